"""A submission's process as the judge holds it: started, called, stopped between calls, killed."""

import contextlib
import ctypes
import os
import re
import signal
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

from bench import process
from bench.build.gpu_library import Kit
from bench.build.toolchain import Artifact
from bench.errors import JudgeFault
from bench.gates import leftovers
from bench.judge.schemas import Language, Outcome
from bench.measure.stopwatch import Stopwatch
from bench.measure.urgency import make_fair, make_urgent, urgent
from bench.measure.warmth import warm
from bench.native import helper
from bench.native.helper import CALL_DIED, CALL_TIMEOUT, State, Timing, What
from bench.runner.buffers import Arena
from bench.runner.command import runner_command
from bench.runner.stance import Watched
from bench.sandbox import RUN_OUTPUT_BYTES, Level, Sandbox, run_limits
from bench.task import Sizes
from bench.verdict import Rejected

START_LIMIT_S = 20.0
# Triton compiles, once for each size that is to come.
COMPILE_LIMIT_S = 300.0
# What the judge itself has compiled is not worth more: PyTorch unrolls a loop over sizes for as long as it is let.
TRUSTED_LIMIT_S = 120.0
CPU_S = 600
EMPTY_LIMIT_NS = 2_000_000_000
# How long what wraps a runner takes to end after it, and how long a process takes to stop.
GONE_S, STOP_S = 1.0, 5.0
# Nothing shorter can be told from nothing.
RESOLUTION_NS = 1_000
# A machine that is not quiet now may be in a moment: so many tries take a second or two.
EMPTY_CALLS, CALIBRATIONS, BETWEEN_S = 15, 40, 0.025
# A core that has been idle answers slowly at first, for about as long as a call takes: where it was not kept awake, the
# first side of a pair, which waits for the oracle, was up to 10 % slower than the second
# (docs/decisions/0006-order-within-a-pair.md).
WARM_LEAST_NS, WARM_MOST_NS = 100_000, 2_000_000
# A call whose thread had no core for longer than this – another task had it, or the host took it – was disturbed: its
# time is not the kernel's.
DISTURBED_SHARE, DISTURBED_NS = 0.01, 30_000
LOG_TAIL_BYTES, REPORT_BYTES = 4096, 64 << 10
# A sanitizer puts red zones around everything on the stack.
CHECKED_STACK_BYTES = 256 << 20
# The two clocks of a call, ours without its empty call, may differ by so much; on a GPU, where ours starts when the
# process is awake, by less.
AGREE_NS, AGREE_ON_DEVICE_NS, AGREE_SHARE = 100_000, 20_000, 0.002
# A GPU is the judge's again after a call in the same time as after an empty one, give or take so much: it takes longer
# where work goes on that the call was to have waited for.
LATE_NS, LATE_SHARE = 50_000, 0.02
# What is taken off a call's time is small: an empty call never leaves the native loop, which has to be woken for it.
EMPTY_MOST_NS = 100_000


class Runner:
    """One process that runs an entry point on borrowed buffers.

    It starts behind its walls and waits there; `load` lets it load the library, which need not exist before. It is
    stopped (SIGSTOP) whenever the judge touches the buffers, and whenever the other side is timed.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        folder: Path,
        artifact: Artifact,
        shim: Path,
        arena: Arena,
        cores: Sequence[int],
        workspace: bool,
        checks: tuple[str, ...] = (),
        kit: Kit | None = None,
        planned: Sequence[Sizes] | None = None,
    ) -> None:
        """`checks` are the options of a sanitizer that the artifact was built with: a runner of its own, without
        a limit on addresses, and may read the files that a report needs. `kit` is that of the GPU whose memory the
        arena lies in. `planned` are the sizes that it will be called at, where those are not all of the arena's."""
        self._sandbox = sandbox
        self._fd, self._control = helper.control_page()
        self._generation = 0
        self._arguments = (*arena.task.arguments, "workspace")
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`; no folder: a submission could remove it
        self.workspace = workspace
        self.checked = bool(checks)
        self.on_device = kit is not None
        self._start_limit_s = COMPILE_LIMIT_S if artifact.language is Language.TRITON else START_LIMIT_S
        if artifact.trusted:
            self._start_limit_s = TRUSTED_LIMIT_S
        self.pid = 0
        self.urgent = False
        self._cores = tuple(cores)
        self._switch = helper.Switch(arena.memory.take_back) if kit else None
        self._last_ns = self._empty_away_ns = self._empty_back_ns = self.empty_ns = 0
        control = (str(self._fd), ",".join(str(core) for core in cores))
        self._trusted = artifact.trusted
        sealed = sandbox.level > Level.LIMITS and not artifact.trusted
        sizes = arena.planned if planned is None else planned
        command = runner_command(artifact, shim, arena, folder, control, sealed, workspace, checks, kit, sizes)
        lent = arena.lent(workspace)
        fds = [self._fd, *(buffer.fd for buffer in lent)]
        limits = run_limits(sum(buffer.size for buffer in lent), CPU_S)
        if self.checked:
            limits = replace(limits, memory_bytes=None, stack_bytes=CHECKED_STACK_BYTES)
        if self.on_device:  # its library maps all memory that a device could address
            limits = replace(limits, memory_bytes=None)
        self._code_files = command.code
        self._killed_before = process.killed_for_memory()
        self._process = sandbox.spawn(command.argv, limits, folder, self._log, fds, command.visible)

    def load(self, timed: bool = True) -> None:
        """Let the process, which waits for this, load the library; for one to be timed, calibrate its empty call.

        Raises:
            Rejected: it does not load, lacks the symbol, ends or hangs meanwhile, or leaves processes behind.
            JudgeFault: the process could not be started at all.
        """
        self._await(self._waits)
        threads, self._code = self.watched.threads(), self.watched.pages_of(self._code_files)
        self._control.admitted = 1
        self._await(self._loaded)
        self.pause()
        if not self._trusted:
            self._check_left(threads)
        if timed:
            self.urgent = make_urgent(self.pid)
            self._calibrate()
        else:
            list(self._empty_calls(1))
        self._home = self.watched.stance()

    def _check_left(self, threads: int) -> None:
        """Raises Rejected where loading has left processes, or on a GPU more threads than there were, which would be in
        others' time."""
        leftovers.check(self.children())
        if self.on_device and self.watched.threads() > threads:
            message = "it starts threads of the host when it is loaded; a kernel for a GPU has no use for them"
            raise Rejected(Outcome.POLICY, "threads", {"message": message}, tail(self._log))

    def calm(self) -> None:
        """Be an ordinary process from now on."""
        if self.urgent:
            make_fair(self.pid)
            self.urgent = False

    @property
    def placed(self) -> bool:
        """Whether Linux tells where the process stands when it is stopped."""
        return self._home.place is not None

    def _waits(self) -> bool:
        """Whether the process in the sandbox has stopped itself; from then on it is watched."""
        if pid := self._sandbox.inner_pid(self._process):
            watched = Watched(pid)
            if watched.stopped() and not watched.gone():
                self.pid, self.watched = pid, watched
                return True
            watched.close()
        return False

    def _loaded(self) -> bool:
        """Whether it says that it is ready; woken until then, for it may stop just after it was woken."""
        if self._control.state == State.READY:
            return True
        if self.watched.stopped():
            self._wake()
        return False

    def _wake(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGCONT)

    def _await(self, reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + self._start_limit_s
        while not reached():
            if self._process.poll() is not None:
                raise self._not_loaded()
            if time.monotonic() > deadline:
                if not self.pid or self.watched.gone():
                    message = f"the runner did not start within {self._start_limit_s:.0f} s"
                    raise JudgeFault(f"{message}; grade again when this machine is less busy")
                detail = {
                    "message": f"the library did not load within {self._start_limit_s:.0f} s; do no work at load time"
                }
                raise Rejected(Outcome.TIMEOUT, "load", detail, tail(self._log))
            time.sleep(0.0002)

    def _not_loaded(self) -> Exception:
        said = bytes(self._control.message).decode(errors="replace")
        if self._control.state == State.NO_SYMBOL:
            message = f"define the entry point with the name and signature of the contract ({_without_path(said)})"
            return Rejected(Outcome.BUILD_FAILED, "symbol", {"message": message}, said)
        if self._control.state == State.NOT_LOADED:
            last = said.strip().splitlines()[-1] if said.strip() else "the loader gave no reason"
            message = f"it does not load ({_without_path(last)}); mend what this names"
            return Rejected(Outcome.BUILD_FAILED, "load", {"message": message}, said)
        if self._control.state == State.STARTING and not self._control.admitted:
            return JudgeFault(
                f"the runner could not start (code {self._process.returncode}): {said or tail(self._log)}"
            )
        return self._died("load")

    def pause(self) -> None:
        """Stop the process, every thread of it, before the judge reads or writes a buffer.

        Raises:
            Rejected: (`tampered`) it cannot be stopped: a thread waits where no signal but the last one reaches it.
        """
        deadline = time.monotonic() + STOP_S
        while not self.watched.stopped():
            # Again and again: another's SIGCONT takes back a SIGSTOP that has not come into effect.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGSTOP)
            if time.monotonic() > deadline:
                message = f"the kernel's process does not stop within {STOP_S:.0f} s; wait for no other process"
                raise Rejected(Outcome.TAMPERED, "state", {"message": message})

    def _empty_calls(self, count: int) -> Iterator[tuple[Timing, int]]:
        """Empty calls, waking and stopping included, and how long (ns) the process had no core meanwhile."""
        for _ in range(count):
            ran_before, waited_before = self.watched.ran_and_waited_ns()
            with urgent(), warm(self._cores, WARM_LEAST_NS, self.pid) as phase:
                timing = self._checked(self._call((), What.EMPTY, EMPTY_LIMIT_NS, phase), "wake")
            self.pause()
            yield timing, self._away_ns(timing, ran_before, waited_before)

    def _calibrate(self) -> None:
        """What the bracket itself costs on this runner in this session."""
        for _ in range(CALIBRATIONS):
            timings, away = zip(*self._empty_calls(EMPTY_CALLS), strict=True)
            # The least, not the usual: too little taken off makes no call shorter than it was.
            self.empty_ns = min(timing.elapsed_ns for timing in timings)
            self._empty_away_ns = round(statistics.median(away))
            self._empty_back_ns = round(statistics.median(timing.back_ns for timing in timings))
            if self.empty_ns <= EMPTY_MOST_NS:
                return
            time.sleep(BETWEEN_S)
        raise JudgeFault(
            f"an empty call takes {self.empty_ns} ns, more than {EMPTY_MOST_NS}; grade again on a quieter machine"
        )

    def _away_ns(self, timing: Timing, ran_before: int, waited_before: int) -> int:
        """How long of the last call the main thread had no core; one that waits for others of its own is rightly off.

        Where the kernel counts nothing, the time that it has waited for a core is all there is. On a GPU it is not in
        the call's time that the process wakes; who loses the core in a call shows in what the device's clock says.
        """
        if self.on_device:
            return 0
        ran_ns, waited_ns = self.watched.ran_and_waited_ns()
        counted = ran_ns > 0 and self.watched.alone()
        return timing.elapsed_ns - (ran_ns - ran_before) if counted else waited_ns - waited_before

    def describe(self, nbytes: Sequence[int]) -> None:
        """Tell a checked runner how many bytes each argument of the coming call has (0 where it is no array)."""
        self._control.bytes[: len(nbytes)] = nbytes

    @property
    def exit_code(self) -> int | None:
        """How the process ended: None while it is there, negative for a signal."""
        return self._process.returncode

    def printed(self) -> str:
        """The end of what it printed, long enough for a sanitizer's report."""
        return tail(self._log, REPORT_BYTES)

    def call(
        self,
        slots: Sequence[int],
        limit_ns: int,
        stage: str,
        watch: Stopwatch,
        timed: bool = False,
        watched: Sequence[int] = (),
    ) -> Timing:
        """One call of the kernel, the process stopped before and after; elapsed has the empty call taken off.

        A `timed` call finds its core awake, as it would be for as long as the last call took. `watched` are addresses
        of bytes of the outputs: they must be what they were when the call was done.

        Raises:
            Rejected: outcome `timeout`, `crashed` or `resource`, or `tampered`: see `_check_stance`.
        """
        ran_before, waited_before = self.watched.ran_and_waited_ns()
        # A GPU's changing hands keeps the core awake before the clock starts.
        most_ns = WARM_LEAST_NS if self.on_device else WARM_MOST_NS
        warm_ns = min(max(self._last_ns, WARM_LEAST_NS), most_ns) if timed else 0
        with (
            urgent() if timed and self.urgent else contextlib.nullcontext(),
            warm(self._cores, warm_ns, self.pid) as phase,
            watch.stage("kernel"),
        ):
            timing = self._checked(self._call(slots, What.KERNEL, limit_ns, phase, watched), stage, limit_ns)
        self.pause()
        if timing.seen != b"".join(ctypes.string_at(address, 1) for address in watched):
            message = "the kernel went on writing after it had said that it was done; finish all work before returning"
            raise Rejected(Outcome.TAMPERED, "state", {"message": message})
        self._check_stance(stage)
        return self._of_the_kernel(timing, self._away_ns(timing, ran_before, waited_before) - self._empty_away_ns)

    def _of_the_kernel(self, timing: Timing, away_ns: int) -> Timing:
        """A whole call's time without the empty call's, held against the other clocks; it had no core for `away_ns`."""
        elapsed_ns = max(timing.elapsed_ns - self.empty_ns, RESOLUTION_NS)
        bound_ns = max(elapsed_ns * DISTURBED_SHARE, DISTURBED_NS)
        if -away_ns > bound_ns:  # it went on after it had said that it was done: that is part of its time
            elapsed_ns -= away_ns
        self._last_ns = elapsed_ns
        taken = away_ns > bound_ns
        offset_ns = elapsed_ns - self._control.own_ns
        agree_ns = (AGREE_ON_DEVICE_NS if self.on_device else AGREE_NS) + elapsed_ns * AGREE_SHARE
        late_ns = timing.back_ns - self._empty_back_ns
        # Ours shows more where waking took long, theirs where it worked on a call that was over for us.
        return replace(
            timing,
            elapsed_ns=elapsed_ns,
            disturbed=timing.disturbed + int(taken or offset_ns > agree_ns),
            offset_ns=offset_ns,
            late_ns=late_ns,
            strayed=offset_ns < -agree_ns or late_ns > LATE_NS + elapsed_ns * LATE_SHARE,
        )

    def _check_stance(self, stage: str) -> None:
        """Raises Rejected (`tampered`) when the call left something changed in its process, or has not returned."""
        changed = self._home.departure(self.watched.stance(self._home))
        if self._control.fp_changed:
            changed = "the floating-point state (rounding, masks or flush-to-zero); restore it before returning"
        if self.watched.changed(self._code):
            changed = "the code around it; leave the functions of its caller as they are"
        if changed:
            if self.watched.gone() or process.ends_within(self._process, GONE_S):  # what has ended stands nowhere
                raise self._gone(stage)
            raise Rejected(Outcome.TAMPERED, "state", {"message": f"the kernel changed {changed}"})

    def _call(
        self,
        slots: Sequence[int],
        what: What,
        limit_ns: int,
        phase: ctypes.c_int | None,
        watched: Sequence[int] = (),
    ) -> Timing:
        """One call; the process is stopped before it and after it.

        On a GPU the judge used it last: the switch between the two is nobody's time.
        """
        self._generation += 2 if self.on_device else 1
        words = (ctypes.c_int64 * len(slots))(*slots)
        processes = self._process.pid, self.pid
        return helper.call(
            self._control, self._generation, words, what, limit_ns, *processes, phase, watched, self._switch
        )

    def _checked(self, timing: Timing, stage: str, limit_ns: int = EMPTY_LIMIT_NS) -> Timing:
        if timing.elapsed_ns == CALL_TIMEOUT and self.watched.held():
            raise JudgeFault(f"something outside stopped the runner in a call ({stage}); grade again")
        if timing.elapsed_ns == CALL_TIMEOUT and self.watched.gone():
            raise self._gone(stage)
        if timing.elapsed_ns == CALL_TIMEOUT:
            detail = {
                "message": f"one call took more than {limit_ns / 1e9:.1f} s; end every loop, or do less work in a call",
                "stage": stage,
            }
            raise Rejected(Outcome.TIMEOUT, "time", detail, tail(self._log))
        if timing.elapsed_ns == CALL_DIED:
            self._process.wait()
            raise self._died(stage)
        return timing

    def _gone(self, stage: str) -> Exception:
        """Why the process is gone, once what wraps it is gone too: that alone knows how it ended."""
        if process.ends_within(self._process, STOP_S):
            return self._died(stage)
        return JudgeFault(f"something outside stopped what wraps the runner ({stage}); grade again")

    def _died(self, stage: str) -> Exception:
        """Why the process is gone, from its exit status (never from what it printed).

        A sealed process cannot send itself SIGKILL, nor leave with a code that looks like one.
        """
        said = bytes(self._control.message).decode(errors="replace")
        if self._control.state == State.REFUSED:
            return Rejected(Outcome.POLICY, "library", {"message": said, "stage": stage})
        if self._control.state == State.RAISED:
            last = said.strip().splitlines()[-1] if said.strip() else ""
            short = "MemoryError" in last.partition(":")[0]  # NumPy's is _ArrayMemoryError
            outcome = Outcome.RESOURCE if short else Outcome.CRASHED
            return Rejected(outcome, "exception", {"message": last, "stage": stage}, said)
        ended_by = process.signal_of(self._process.returncode)
        if ended_by == signal.SIGKILL and process.killed_for_memory() == self._killed_before:
            return JudgeFault(f"something outside killed the runner ({stage}); grade again")
        outcome, property, message = self._reason(ended_by)
        return Rejected(outcome, property, {"message": message, "stage": stage}, tail(self._log))

    def _reason(self, ended_by: int | None) -> tuple[Outcome, str, str]:
        """Outcome, property and what to do, for the signal that ended the process (None: it left by itself)."""
        fault = self._control.fault
        if ended_by in (signal.SIGSEGV, signal.SIGBUS) and 0 < fault <= len(self._arguments):
            name = self._arguments[fault - 1]
            return Outcome.TAMPERED, "memory", (
                f"it reached beyond the ends of the array '{name}', or wrote to it although it is an input; "
                "stay within the shapes of the contract"
            )  # fmt: skip
        match ended_by:
            case None:
                code = self._process.returncode
                return Outcome.CRASHED, "exit", f"it ended the process (exit code {code}); return to the caller instead"
            case signal.SIGSYS:
                return Outcome.POLICY, "system_call", "it made a system call that no kernel needs; compute, and return"
            case signal.SIGXFSZ:
                limit = f"{RUN_OUTPUT_BYTES >> 20} MiB"
                return Outcome.RESOURCE, "output", f"it wrote more than {limit} of output; print less, or nothing"
            case signal.SIGXCPU:
                return Outcome.TIMEOUT, "cpu_time", "it used up its CPU time; do less work in a call"
            case signal.SIGKILL:  # and Linux has killed something for memory meanwhile: see `_died`
                return Outcome.RESOURCE, "memory", "it was killed, most likely for the memory it took; take less"
        name = _signal_name(ended_by)
        look = (
            "an assertion, or a heap that it overwrote" if name == "SIGABRT" else "an address or a size that is wrong"
        )
        return Outcome.CRASHED, "signal", f"a call ended in {name}; look for {look}"

    def children(self) -> int:
        """Processes that the submission started and that are still there."""
        return len(process.descendants(self.pid))

    def close(self) -> None:
        """Kill the process and everything it started, and give back the control page."""
        process.kill_tree(self._process)
        if self.pid:
            self.watched.close()
        self._log.close()
        del self._control
        os.close(self._fd)


def tail(log: IO[bytes], nbytes: int = LOG_TAIL_BYTES) -> str:
    """The end of what a submission printed."""
    log.seek(max(log.seek(0, os.SEEK_END) - nbytes, 0))
    return log.read().decode(errors="replace")


def _signal_name(number: int) -> str:
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"


def _without_path(text: str) -> str:
    """A loader's message without the folder of the library."""
    return re.sub(r"/\S*/", "", text)
