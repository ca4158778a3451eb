"""The one place that starts and ends processes: closed stdin, limits, output caps, and nothing left behind."""

import contextlib
import ctypes
import os
import select
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import psutil

from bench.errors import EnvironmentFault

OUTPUT_CAP_BYTES = 16 << 10
# What a scheduler or an operator may send to every process of a job at once.
STOPS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2})
# Tells a child that serves who started it; see `die_with_parent`.
_PARENT = "KCOURT_PARENT"
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


@dataclass(frozen=True)
class Limits:
    """What a process tree may use; None leaves one unlimited. Memory is address space, in bytes."""

    wall_s: float | None = None
    cpu_s: int | None = None
    memory_bytes: int | None = None
    processes: int | None = None
    file_bytes: int | None = None
    stack_bytes: int | None = None


@dataclass(frozen=True)
class Completed:
    """How a command ended. `output` is stdout and stderr together, capped (head and tail kept)."""

    returncode: int
    output: str
    timed_out: bool

    @property
    def signal(self) -> int | None:
        """The signal that ended the command, if one did."""
        return signal_of(self.returncode)

    @property
    def ok(self) -> bool:
        return self.returncode == 0 and not self.timed_out


def signal_of(returncode: int) -> int | None:
    """The signal that ended a command, also as a wrapper reports it (128 + signal); None when it left by itself."""
    if returncode < 0:
        return -returncode
    return returncode - 128 if 128 < returncode <= 128 + signal.SIGRTMAX else None


def limited(argv: Sequence[str], limits: Limits) -> list[str]:
    """`argv` behind util-linux's prlimit, so that limits bind before the program's first instruction."""
    options = []
    if limits.cpu_s is not None:
        options.append(f"--cpu={limits.cpu_s}:{limits.cpu_s + 1}")
    if limits.memory_bytes is not None:
        options.append(f"--as={limits.memory_bytes}")
    if limits.stack_bytes is not None:
        options.append(f"--stack={limits.stack_bytes}")
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
    with tempfile.TemporaryFile() as sink:
        child = spawn(argv, limits=limits, cwd=cwd, env=env, output=sink)
        try:
            timed_out = not ends_within(child, limits.wall_s)
        finally:
            kill_tree(child)
        return Completed(child.returncode, _capped(sink), timed_out)


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
    holds_stops: bool = False,
) -> subprocess.Popen[bytes]:
    """Start a command in a session of its own; stdout goes to `output`, stderr to `errors` (default: the same).

    stdin is closed unless the caller talks to the child through it. With `holds_stops` the child begins with STOPS
    blocked: none of them ends it before it has said, by `ignore_stops` or `let_stops_in`, what it makes of them.

    Raises:
        EnvironmentFault: the program or the folder `cwd` does not exist; the message names it.
    """
    if holds_stops:
        env = {**(os.environ if env is None else env), _PARENT: str(os.getpid())}
    # Behind prlimit a missing program would be prlimit's failure, and look like the program's own.
    if shutil.which(argv[0], path=(os.environ if env is None else env).get("PATH")) is None:
        raise EnvironmentFault(f"'{argv[0]}' was not found; install it or put it on PATH")
    command = limited(argv, limits) if limits else list(argv)
    try:
        with _stops_blocked() if holds_stops else contextlib.nullcontext():
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
        remedy = "make that folder" if error.filename == cwd else "install it or put it on PATH"
        raise EnvironmentFault(f"'{error.filename}' was not found; {remedy}") from error


@contextlib.contextmanager
def _stops_blocked() -> Iterator[None]:
    """This thread, and what it starts meanwhile, takes none of STOPS; those that came are delivered afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def ignore_stops() -> None:
    """Let STOPS pass by this process and, since exec keeps that, by everything that it starts from now on."""
    for number in STOPS:
        signal.signal(number, signal.SIG_IGN)
    let_stops_in()


def let_stops_in() -> None:
    """Have STOPS delivered, those too that came while `spawn` held them back."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)


def ends_within(child: "subprocess.Popen[bytes]", timeout_s: float | None) -> bool:
    """Whether a child ends within `timeout_s` seconds; woken by Linux, where `Popen.wait` would poll."""
    try:
        watched = os.pidfd_open(child.pid)
    except ProcessLookupError:
        return True
    try:
        poller = select.poll()
        poller.register(watched, select.POLLIN)
        ended = bool(poller.poll(None if timeout_s is None else timeout_s * 1e3))
    finally:
        os.close(watched)
    if ended:
        child.wait()
    return ended


def descendants(pid: int) -> list[int]:
    """Every descendant of a process, from Linux's own lists of children.

    psutil would read all of /proc instead, which costs more than a small grade on a busy node.
    """
    found: list[int] = []
    for child in children(pid):
        found += [child, *descendants(child)]
    return found


def children(pid: int) -> list[int]:
    """The children of a process, oldest first; none when it is gone."""
    found: list[int] = []
    with contextlib.suppress(OSError):  # it may end while we look
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                found += map(int, (thread / "children").read_text().split())
    return found


def kill_tree(child: "subprocess.Popen[bytes]") -> None:
    """SIGKILL a child, its descendants and its session, and reap it."""
    if child.returncode is None:
        # It must neither start more nor note their end as something of its own while they are killed.
        child.send_signal(signal.SIGSTOP)
        _kill(descendants(child.pid))
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    if child.returncode is None:
        child.kill()
        child.wait()


def _kill(pids: Sequence[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def terminate(child: "subprocess.Popen[bytes]", grace_s: float) -> int:
    """SIGTERM a child, wait up to `grace_s` seconds, then kill its tree; returns its exit code."""
    with contextlib.suppress(ProcessLookupError):
        child.terminate()
    ends_within(child, grace_s)
    kill_tree(child)
    return child.returncode


def killed_for_memory() -> int:
    """How many processes Linux has killed on this machine because memory ran out; 0 where it does not count."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/vmstat").read_text(encoding="ascii").splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0


def adopt_orphans() -> None:
    """Make this process the parent of its orphaned descendants, so that `setsid` cannot hide them from `sweep`."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """Ask Linux to SIGKILL this process when the thread that started it ends; do so ourselves if it has.

    A judge that missed the end of its router would go on holding port and shard.
    """
    parent = os.environ.pop(_PARENT, None)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if parent is not None and os.getppid() != int(parent):
        os.kill(os.getpid(), signal.SIGKILL)


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0):
        raise EnvironmentFault(f"prctl({option}) failed: {os.strerror(ctypes.get_errno())}; Kernelcourt needs Linux")


def sweep(spare: Set[int] = frozenset()) -> int:
    """Kill every descendant of this process but those in `spare` (and theirs); returns how many there were.

    Killing an orphan can bring its children up to this process, so it looks again until none is left.
    """
    killed = 0
    while doomed := [pid for pid in descendants(os.getpid()) if pid not in spare]:
        kept = {below for pid in spare for below in descendants(pid)}
        doomed = [pid for pid in doomed if pid not in kept]
        if not doomed:
            break
        _kill(doomed)
        for pid in doomed:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
        killed += len(doomed)
    return killed


def _capped(sink: IO[bytes]) -> str:
    """Head and tail of a captured output, at most OUTPUT_CAP_BYTES."""
    size = sink.seek(0, os.SEEK_END)
    sink.seek(0)
    if size <= OUTPUT_CAP_BYTES:
        return sink.read().decode(errors="replace")
    half = OUTPUT_CAP_BYTES // 2
    head = sink.read(half).decode(errors="replace")
    sink.seek(size - half)
    tail = sink.read().decode(errors="replace")
    return f"{head}\n[... {size - 2 * half} bytes left out ...]\n{tail}"
