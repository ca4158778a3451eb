"""The one place that starts and ends processes: closed stdin, limits, output caps, and nothing left behind."""

import contextlib
import ctypes
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import psutil

from bench.errors import EnvironmentFault

OUTPUT_CAP_BYTES = 16 << 10
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


@dataclass(frozen=True)
class Limits:
    """What a process tree may use; None leaves one unlimited. Memory is address space, in bytes."""

    wall_s: float | None = None
    cpu_s: int | None = None
    memory_bytes: int | None = None
    processes: int | None = None
    file_bytes: int | None = None


@dataclass(frozen=True)
class Completed:
    """How a command ended. `output` is stdout and stderr together, capped (head and tail kept)."""

    argv: tuple[str, ...]
    returncode: int
    output: str
    timed_out: bool
    elapsed_s: float

    @property
    def ok(self) -> bool:
        return self.returncode == 0 and not self.timed_out

    @property
    def signal(self) -> signal.Signals | None:
        """The signal that ended the command, if one did."""
        code = -self.returncode if self.returncode < 0 else self.returncode - 128
        return signal.Signals(code) if code in set(signal.Signals) else None


def limited(argv: Sequence[str], limits: Limits) -> list[str]:
    """`argv` behind util-linux's prlimit, so that limits bind before the program's first instruction."""
    options = []
    if limits.cpu_s is not None:
        options.append(f"--cpu={limits.cpu_s}:{limits.cpu_s + 1}")
    if limits.memory_bytes is not None:
        options.append(f"--as={limits.memory_bytes}")
    if limits.file_bytes is not None:
        options.append(f"--fsize={limits.file_bytes}")
    if limits.processes is not None:
        options.append(f"--nproc={limits.processes + _own_processes()}")
    return ["prlimit", "--core=0", *options, "--", *argv]


def _own_processes() -> int:
    """Threads that this user already runs: RLIMIT_NPROC counts them all (and does not bind root at all)."""
    if os.getuid() == 0:
        return 0
    total = 0
    for process in psutil.process_iter(["uids", "num_threads"]):
        if process.info["uids"] and process.info["uids"].real == os.getuid():
            total += process.info["num_threads"] or 1
    return total


def run(
    argv: Sequence[str],
    *,
    limits: Limits = Limits(),
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Completed:
    """Run a command to its end with a closed stdin, then kill whatever it left behind.

    Raises:
        EnvironmentFault: the program does not exist; the message names it.
    """
    start = time.monotonic()
    with tempfile.TemporaryFile() as sink:
        child = spawn(argv, limits=limits, cwd=cwd, env=env, output=sink)
        try:
            returncode, timed_out = child.wait(limits.wall_s), False
        except subprocess.TimeoutExpired:
            timed_out = True
            kill_tree(child)
            returncode = child.returncode
        finally:
            kill_tree(child)
        output = _capped(sink)
    return Completed(tuple(argv), returncode, output, timed_out, time.monotonic() - start)


def spawn(
    argv: Sequence[str],
    *,
    limits: Limits | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    output: IO[Any] | int = subprocess.DEVNULL,
    errors: IO[Any] | int = subprocess.STDOUT,
    stdin: IO[Any] | int = subprocess.DEVNULL,
    pass_fds: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a command in a session of its own; stdout goes to `output`, stderr to `errors` (default: the same).

    stdin is closed unless the caller talks to the child through it.

    Raises:
        EnvironmentFault: the program does not exist; the message names it.
    """
    command = limited(argv, limits) if limits else list(argv)
    try:
        return subprocess.Popen(
            command,
            stdin=stdin,
            stdout=output,
            stderr=errors,
            cwd=cwd,
            env=None if env is None else dict(env),
            pass_fds=tuple(pass_fds),
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise EnvironmentFault(f"'{error.filename}' is not here; install it or put it on PATH") from error


def descendants(pid: int) -> list[psutil.Process]:
    """Every live descendant of a process, zombies left out."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return [p for p in psutil.Process(pid).children(recursive=True) if p.is_running()]
    return []


def kill_tree(child: "subprocess.Popen[bytes]") -> None:
    """SIGKILL a child, its descendants and its session, and reap it."""
    tree = descendants(child.pid) if child.returncode is None else []
    for process in tree:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    if child.returncode is None:
        child.kill()
        child.wait()


def terminate(child: "subprocess.Popen[bytes]", grace_s: float) -> int:
    """SIGTERM a child, wait up to `grace_s` seconds, then kill its tree; returns its exit code."""
    with contextlib.suppress(ProcessLookupError):
        child.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(grace_s)
    kill_tree(child)
    return child.returncode


def adopt_orphans() -> None:
    """Make this process the parent of its orphaned descendants, so that `setsid` cannot hide them from `sweep`."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """Ask the kernel to SIGKILL this process when the thread that started it ends."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0):
        raise EnvironmentFault(f"prctl({option}) failed: {os.strerror(ctypes.get_errno())}; Kernelcourt needs Linux")


def sweep(spare: set[int]) -> int:
    """Kill every descendant of this process but those in `spare` (and theirs); returns how many there were."""
    left = [process for process in psutil.Process().children() if process.pid not in spare]
    doomed = [*left, *(below for process in left for below in descendants(process.pid))]
    for process in doomed:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(doomed, timeout=2)
    return len(doomed)


def _capped(sink: IO[bytes]) -> str:
    """Head and tail of a captured output, at most OUTPUT_CAP_BYTES."""
    size = sink.seek(0, os.SEEK_END)
    sink.seek(0)
    if size <= OUTPUT_CAP_BYTES:
        return sink.read().decode(errors="replace")
    half = OUTPUT_CAP_BYTES // 2
    head = sink.read(half)
    sink.seek(size - half)
    tail = sink.read()
    parts = (
        head.decode(errors="replace"),
        f"[... {size - 2 * half} bytes left out ...]",
        tail.decode(errors="replace"),
    )
    return "\n".join(parts)
