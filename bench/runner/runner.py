"""A submission's process as the judge holds it: started, called, stopped between calls, killed."""

import contextlib
import ctypes
import mmap
import os
import signal
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench import process
from bench.build.toolchain import Artifact
from bench.errors import JudgeFault
from bench.judge.schemas import Language, Outcome
from bench.measure.stopwatch import Stopwatch
from bench.native import helper
from bench.native.helper import CALL_DIED, CALL_TIMEOUT, Control, Timing
from bench.runner.buffers import Arena
from bench.sandbox import RUN_OUTPUT_BYTES, Sandbox, run_limits
from bench.verdict import Rejected

STARTING, READY, NOT_LOADED, NO_SYMBOL, RAISED = 0, 1, 2, 3, 4
START_LIMIT_S = 20.0
EMPTY_LIMIT_NS = 2_000_000_000
EMPTY_CALLS = 40
WAKE_CALLS = 2
LOG_TAIL_BYTES = 4096
_HOST = Path(__file__).with_name("host.py")


class Runner:
    """One process that runs a loaded entry point on borrowed buffers.

    It is stopped (SIGSTOP) whenever the judge touches the buffers, and whenever the other side is timed.
    """

    def __init__(
        self, sandbox: Sandbox, folder: Path, artifact: Artifact, shim: Path, symbol: str, arena: Arena,
        cores: Sequence[int], cpu_s: int = 600,
    ) -> None:  # fmt: skip
        self._fd = os.memfd_create("control", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self._fd, mmap.PAGESIZE)
        self._page = mmap.mmap(self._fd, mmap.PAGESIZE)
        self._control = Control.from_buffer(self._page)
        self._at = ctypes.addressof(self._control)
        self._generation = 0
        self._arguments = tuple(arena.task.arguments)
        self._log = (folder / f"{symbol}-{os.urandom(4).hex()}.log").open("w+b")
        self.empty_ns = 0
        self.own_ns = 0
        pinned = ",".join(str(core) for core in cores)
        if artifact.language is Language.PYTHON:
            program = [sys.executable, "-I", str(_HOST), str(self._fd), pinned, str(helper.python_waiter())]
        else:
            program = [str(helper.runner_program()), str(self._fd), pinned]
        argv = [*program, str(shim), str(artifact.path), symbol, *arena.descriptions()]
        fds = [self._fd, *(buffer.fd for buffer in arena.buffers.values())]
        self._process = sandbox.spawn(argv, run_limits(arena.total_bytes, cpu_s), folder, self._log, fds)
        try:
            self._await_ready()
            self.empty_ns = self._calibrate()
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def _await_ready(self) -> None:
        deadline = time.monotonic() + START_LIMIT_S
        while self._control.state != READY:
            if self._process.poll() is not None:
                raise self._not_loaded()
            if time.monotonic() > deadline:
                detail = {"message": f"the library did not load within {START_LIMIT_S:.0f} s"}
                raise Rejected(Outcome.TIMEOUT, "load", detail, self._tail())
            time.sleep(0.0002)
        self.pause()

    def _not_loaded(self) -> Exception:
        said = bytes(self._control.message).decode(errors="replace")
        if self._control.state == NO_SYMBOL:
            return Rejected(Outcome.BUILD_FAILED, "symbol", {"message": said}, said)
        if self._control.state == NOT_LOADED:
            return Rejected(Outcome.BUILD_FAILED, "load", {"message": said.splitlines()[-1] if said else ""}, said)
        if self._control.state == STARTING:
            return JudgeFault(f"the runner could not start (code {self._process.returncode}): {said or self._tail()}")
        return self._died("load")

    def pause(self) -> None:
        """Stop the process, every thread of it, before the judge reads or writes a buffer."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGSTOP)
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self, warm_ns: int = 0) -> None:
        """Wake the process; two empty calls, and more for `warm_ns`, take the wake-up itself out of what follows."""
        os.kill(self.pid, signal.SIGCONT)
        end, calls = time.perf_counter_ns() + warm_ns, 0
        while calls < WAKE_CALLS or time.perf_counter_ns() < end:
            self._checked(self._call((), True, EMPTY_LIMIT_NS), "wake")
            calls += 1

    def _calibrate(self) -> int:
        """Median ns of an empty call in this session: what the bracket itself costs on this runner."""
        self.resume()
        calls = [self._checked(self._call((), True, EMPTY_LIMIT_NS), "wake") for _ in range(EMPTY_CALLS)]
        self.pause()
        return round(statistics.median(timing.elapsed_ns for timing in calls))

    def call(self, slots: Sequence[int], limit_ns: int, stage: str, watch: Stopwatch, warm_ns: int = 0) -> Timing:
        """One call of the kernel, the process stopped before and after; elapsed has the empty call taken off.

        Raises:
            Rejected: outcome `timeout`, `crashed` or `resource`.
        """
        self.resume(warm_ns)
        with watch.stage("kernel"):
            timing = self._checked(self._call(slots, False, limit_ns), stage, limit_ns)
        self.pause()
        self.own_ns = self._control.own_ns
        return Timing(max(timing.elapsed_ns - self.empty_ns, 1), timing.disturbed)

    def _call(self, slots: Sequence[int], empty: bool, limit_ns: int) -> Timing:
        self._generation += 1
        words = (ctypes.c_int64 * len(slots))(*slots)
        return helper.call(self._at, self._generation, words, empty, limit_ns, self.pid)

    def _checked(self, timing: Timing, stage: str, limit_ns: int = EMPTY_LIMIT_NS) -> Timing:
        if timing.elapsed_ns == CALL_TIMEOUT:
            detail = {"message": f"one call took more than {limit_ns / 1e9:.1f} s", "stage": stage}
            raise Rejected(Outcome.TIMEOUT, "time", detail, self._tail())
        if timing.elapsed_ns == CALL_DIED:
            self._process.wait()
            raise self._died(stage)
        return timing

    def _died(self, stage: str) -> Rejected:
        """Why the process is gone, from the kernel's own word (never from what it printed)."""
        code = self._process.returncode
        if self._control.state == RAISED:
            said = bytes(self._control.message).decode(errors="replace")
            last = said.strip().splitlines()[-1] if said.strip() else ""
            short = "MemoryError" in last.partition(":")[0]  # NumPy's is _ArrayMemoryError
            outcome = Outcome.RESOURCE if short else Outcome.CRASHED
            return Rejected(outcome, "exception", {"message": last, "stage": stage}, said)
        if code == -signal.SIGXFSZ:
            message = f"it wrote more than {RUN_OUTPUT_BYTES >> 20} MiB of output"
            return Rejected(Outcome.RESOURCE, "output", {"message": message, "stage": stage}, self._tail())
        if code == -signal.SIGXCPU:
            return Rejected(Outcome.TIMEOUT, "cpu_time", {"message": "it used up its CPU time", "stage": stage}, "")
        if code == -signal.SIGKILL:
            message = "it was killed, most likely for the memory it took"
            return Rejected(Outcome.RESOURCE, "memory", {"message": message, "stage": stage}, self._tail())
        if code in (-signal.SIGSEGV, -signal.SIGBUS) and 0 < self._control.fault <= len(self._arguments):
            output = self._arguments[self._control.fault - 1]
            message = f"it wrote to the read-only array '{output}', or reached beyond its ends"
            detail = {"message": message, "output": output, "stage": stage}
            return Rejected(Outcome.TAMPERED, "memory", detail, self._tail())
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        message = f"the process ended in the middle of a call ({name})"
        return Rejected(
            Outcome.CRASHED,
            "signal" if code < 0 else "exit",
            {"message": message, "stage": stage},
            self._tail(),
        )

    def children(self) -> int:
        """Processes that the submission started and that are still there."""
        return len(process.descendants(self.pid))

    def _tail(self) -> str:
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(size - LOG_TAIL_BYTES, 0))
        return self._log.read().decode(errors="replace")

    def close(self) -> None:
        """Kill the process and everything it started, and give back the control page."""
        process.kill_tree(self._process)
        self._log.close()
        del self._control
        with contextlib.suppress(BufferError):
            self._page.close()
        os.close(self._fd)

    def __enter__(self) -> "Runner":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
