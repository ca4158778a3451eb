"""Profiles one submission: built for it, checked once like a preview, then called under a profiler in the sandbox."""

import contextlib
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

from bench import process
from bench.build import builder
from bench.build.toolchain import Artifact
from bench.court import Court
from bench.errors import EnvironmentFault, JudgeFault, KernelcourtError, UsageError
from bench.gates import artifacts
from bench.inputs import Case
from bench.judge.schemas import Language, Outcome, ProfileTool, not_profiled
from bench.measure.sampling import TimeLimits
from bench.measure.session import Session
from bench.measure.stopwatch import Stopwatch
from bench.native import helper
from bench.native.helper import State
from bench.profilers import GPU_PROFILERS, PROFILERS, isa
from bench.profilers.profiler import Profiler, Recording
from bench.profilers.report import counters, report_text
from bench.records import Lacking, ProfileOrder, ProfileReport
from bench.reference import Twin
from bench.runner.buffers import Arena
from bench.runner.runner import Runner, tail
from bench.sandbox import Level, Sandbox, run_limits, scratch_folder
from bench.task import Task, find_task
from bench.verdict import Rejected

STAGE = "profile"
WALL_S = 120


@dataclass
class Work:
    """One profile in progress. The sandbox has the profiler's variables."""

    order: ProfileOrder
    profiler: Profiler
    task: Task
    court: Court
    folder: Path
    watch: Stopwatch = field(default_factory=Stopwatch)

    @property
    def sandbox(self) -> Sandbox:
        sandbox = self.court.sandbox
        return replace(sandbox, variables={**sandbox.variables, **self.profiler.variables})

    @property
    def sizes(self) -> dict[str, int]:
        return self.task.size(self.profiler.preset)


def profile(order: ProfileOrder, court: Court) -> ProfileReport | Lacking:
    """Profile one submission on inputs of its own. Whatever goes wrong is an outcome, as in a grade.

    Raises:
        UsageError: an unknown kernel, or a language that no profiler takes (nothing was run).
    """
    check_language(order.language, order.tool)
    task = find_task(order.kernel)
    if order.tool is ProfileTool.ISA:
        return compiled(order, court)
    if of_gpus := GPU_PROFILERS.get(order.tool):
        needs = of_gpus.needs(court.device_of(order.language))
        return Lacking(
            why=needs or f"{order.tool} is not run by judges yet; run it beside your own program, or use isa"
        )
    profiler = PROFILERS[order.tool]
    if why := profiler.lacking(court.sandbox):
        return Lacking(why=why)
    with scratch_folder() as folder:
        work = Work(order, profiler, task, court, folder)
        try:
            with court.building(work.watch), recording_file() as file:
                artifact = build_for(work)
                calls = record(work, artifact, file)
                return found(work, artifact, file, calls)
        except Rejected as verdict:
            return failed(order.tool, verdict)
        except (KernelcourtError, OSError, MemoryError) as fault:
            return failed(order.tool, Rejected(Outcome.JUDGE_FAULT, "judge", {"message": str(fault) or repr(fault)}))


def check_language(language: Language, tool: ProfileTool) -> None:
    """Raises UsageError for a language that the profiler cannot look into."""
    if why := not_profiled(language, tool):
        raise UsageError(why)


def compiled(order: ProfileOrder, court: Court) -> ProfileReport | Lacking:
    """What a compiler tells of the submission, of which nothing is called."""
    try:
        with court.building(Stopwatch()):
            return isa.examine(order, court.sandbox)
    except Rejected as verdict:
        return failed(order.tool, verdict)
    except EnvironmentFault as fault:
        return Lacking(why=str(fault))


def build_for(work: Work) -> Artifact:
    """The submission with debug information, and without instructions that the profiler does not know."""
    return artifacts.make(work.sandbox, work.folder, work.task, work.order, tuple(work.profiler.flags()))[0]


def source_name(work: Work) -> str:
    return f"{work.task.name}{work.order.language.suffix}"


def recording_file() -> IO[bytes]:
    """What the profiler writes to: no file in a folder, where a submission could put a link in its place."""
    return os.fdopen(os.memfd_create("profile", os.MFD_CLOEXEC), "rb")


def record(work: Work, artifact: Artifact, file: IO[bytes]) -> int:
    """Check the submission once on the profile's inputs, then record it there; how many calls were recorded.

    Raises:
        Rejected: it does not load, answers wrongly, or ends or hangs with the profiler or without.
    """
    order, court, task = work.order, work.court, work.task
    twin = Twin(court.sandbox, task)
    workspace = order.workspace_bytes > 0
    shim = builder.call_shim(court.sandbox, task, order.language, workspace)
    with (
        contextlib.closing(Arena(task, [work.sizes], order.workspace_bytes)) as arena,
        court.timing(work.watch),
    ):
        session = Session(task, bytes.fromhex(order.seed), arena, work.watch)
        case = Case(STAGE, "0", work.sizes)
        prepared = session.prepare(case, twin.oracle)
        runner = Runner(work.sandbox, work.folder, artifact, shim, arena, court.cores.timing, workspace)
        with contextlib.closing(runner):
            runner.load()
            session.call(runner, prepared, TimeLimits().now_ns)
        # In-out arguments must be as before the call.
        again = session.prepare(case, lambda *_: prepared.oracle)
        return replay(work, [shim, artifact.path], arena, again.slots, file)


def replay(work: Work, libraries: Sequence[Path], arena: Arena, slots: Sequence[int], file: IO[bytes]) -> int:
    """Call the submission under the profiler, which writes to `file`; how many calls came back.

    `libraries` are the call shim and the submission, `slots` the words of every call.
    """
    profiler, program = work.profiler, helper.replay_program()
    sealed = profiler.sealed and work.sandbox.level > Level.LIMITS
    buffers = arena.lent(workspace=True)
    limits = run_limits(2 * sum(buffer.size for buffer in buffers), WALL_S)  # the writable ones are there twice
    fd, control = helper.control_page()
    control.slot[: len(slots)] = slots
    with os.fdopen(fd), tempfile.TemporaryFile() as log:
        cores = ",".join(map(str, work.court.cores.timing))
        head = [str(program), str(fd), cores, str(int(sealed)), str(profiler.replay_ms)]
        watched = [*head, *map(str, libraries), work.task.name, *arena.descriptions(workspace=True)]
        argv = [*profiler.command(f"/proc/self/fd/{file.fileno()}"), *watched]
        fds = [fd, file.fileno(), *(buffer.fd for buffer in buffers)]
        child = work.sandbox.spawn(argv, limits, work.folder, log, fds, [program, *libraries])
        try:
            in_time = process.ends_within(child, WALL_S)
        finally:
            process.kill_tree(child)
        if in_time and child.returncode == 0 and control.state == State.ENDED:
            return int(control.done)
        raise _unfinished(work, in_time, int(control.state), child.returncode, tail(log))


def _unfinished(work: Work, in_time: bool, state: int, returncode: int, said: str) -> Exception:
    """Why a replay did not come to its end, of a submission that had just passed the same call by itself."""
    tool, preset = work.order.tool, work.profiler.preset
    if not in_time:
        message = f"it took more than {WALL_S} s under {tool} at preset {preset}; do less work in a call"
        return Rejected(Outcome.TIMEOUT, "time", {"message": message, "stage": STAGE}, said)
    if state == State.STARTING:
        return JudgeFault(f"{tool} could not start the call (exit code {returncode}): {said[-500:]}")
    ended_by = process.signal_of(returncode)
    how = f"signal {ended_by}" if ended_by else f"exit code {returncode}"
    message = f"it passed a call by itself, but ended under {tool} ({how}); the log's end says where"
    return Rejected(Outcome.CRASHED, "profiler", {"message": message, "stage": STAGE}, said)


def found(work: Work, artifact: Artifact, file: IO[bytes], calls: int) -> ProfileReport:
    """The report of a profile that was made."""
    order, profiler = work.order, work.profiler
    counts = profiler.read(Recording(file, artifact.path, work.sandbox, work.folder))
    circumstances = (profiler.unit, calls, profiler.preset, work.sizes)
    counted = counters(counts, *circumstances, source_name(work), order.source or "")
    text = report_text(order.kernel, order.tool, counted)
    return ProfileReport(tool=order.tool, outcome=Outcome.SOLVED, report=text, counters=counted)


def failed(tool: ProfileTool, verdict: Rejected) -> ProfileReport:
    return ProfileReport(
        tool=tool,
        outcome=verdict.outcome,
        property=verdict.property,
        detail=verdict.detail,
        log=verdict.log,
    )
