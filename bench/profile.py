"""Profiles one submission: built for it, checked once like a preview, then called under a profiler in the sandbox."""

import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

from bench import process
from bench.build import builder
from bench.build.gpu_library import Kit
from bench.build.toolchain import Artifact
from bench.court import Court
from bench.errors import EnvironmentFault, JudgeFault, KernelcourtError, UsageError
from bench.gates import artifacts
from bench.inputs import Case
from bench.judge.schemas import Device, Language, Outcome, ProfileTool, not_profiled
from bench.measure.sampling import TimeLimits
from bench.measure.session import Prepared, Session
from bench.measure.stopwatch import Stopwatch
from bench.native import helper
from bench.native.helper import State
from bench.process import Completed
from bench.profilers import GPU_PROFILERS, PROFILERS, gpu_report, isa
from bench.profilers.gpu import WALL_S, GpuProfiler, watch
from bench.profilers.profiler import Profiler, Recording
from bench.profilers.report import counters, report_text
from bench.records import Lacking, ProfileOrder, ProfileReport
from bench.reference import Twin
from bench.runner.buffers import Arena
from bench.runner.memory import HOST
from bench.runner.runner import COMPILE_LIMIT_S, Runner, tail
from bench.runner.unattended import Unattended
from bench.sandbox import Level, Sandbox, run_limits, scratch_folder
from bench.task import Task, find_task
from bench.verdict import Rejected

STAGE = "profile"


@dataclass
class Work:
    """One profile in progress. The sandbox has the profiler's variables."""

    order: ProfileOrder
    profiler: Profiler | GpuProfiler
    task: Task
    court: Court
    folder: Path
    watch: Stopwatch = field(default_factory=Stopwatch)

    @property
    def sandbox(self) -> Sandbox:
        sandbox = self.court.sandbox
        return replace(sandbox, variables={**sandbox.variables, **self.profiler.variables})

    @property
    def kit(self) -> Kit | None:
        """How code is built for the GPU that the profiler looks at."""
        return self.court.kit if isinstance(self.profiler, GpuProfiler) else None

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
    if why := lacking(order, court):
        return Lacking(why=why)
    of_gpus = GPU_PROFILERS.get(order.tool)
    with scratch_folder() as folder:
        try:
            with court.building(watch := Stopwatch()):
                if of_gpus:
                    return on_a_gpu(Work(order, of_gpus, task.gpu_track, court, folder, watch), of_gpus)
                profiler = PROFILERS[order.tool]
                return on_a_cpu(Work(order, profiler, task, court, folder, watch), profiler)
        except Rejected as verdict:
            return failed(order.tool, verdict)
        except (KernelcourtError, OSError, MemoryError) as fault:
            return failed(order.tool, Rejected(Outcome.JUDGE_FAULT, "judge", {"message": str(fault) or repr(fault)}))


def lacking(order: ProfileOrder, court: Court) -> str:
    """What this judge lacks for a profile, and what to do; empty where there is all."""
    tool, language = order.tool, order.language
    if tool in PROFILERS:
        return PROFILERS[tool].lacking(court.sandbox)
    device = court.kit.device if court.kit else Device.EMULATED
    if not (why := GPU_PROFILERS[tool].needs(device)):
        return GPU_PROFILERS[tool].lacking()
    there = (ProfileTool.ISA, *(one for one, of_gpus in GPU_PROFILERS.items() if not of_gpus.needs(device)))
    usable = " or ".join(one for one in there if language in one.languages)
    return f"{why}; use {usable}" if usable else why


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


def source_name(work: Work) -> str:
    return f"{work.task.name}{work.order.language.suffix}"


def recording_file() -> IO[bytes]:
    """What the profiler writes to: no file in a folder, where a submission could put a link in its place."""
    return os.fdopen(os.memfd_create("profile", os.MFD_CLOEXEC), "rb")


@dataclass(frozen=True)
class Checked:
    """A submission that has passed one call, and what it passed it with."""

    artifact: Artifact
    shim: Path
    arena: Arena
    session: Session
    passed: Prepared

    def inputs(self) -> list[int]:
        """Put the inputs there as they were before that call; returns the words of one more."""
        return self.session.prepare(self.passed.case, lambda *_: self.passed.oracle).slots


@contextlib.contextmanager
def checked(work: Work, flags: tuple[str, ...] = ()) -> Iterator[Checked]:
    """Build the submission, with `flags` behind the usual ones, and check it once on the profile's inputs.

    Raises:
        Rejected: it does not build or load, answers wrongly, or ends or hangs.
    """
    order, court, task, kit = work.order, work.court, work.task, work.kit
    artifact, _ = artifacts.make(work.sandbox, work.folder, task, order, flags, kit)
    memory = court.memory if kit else HOST
    twin = Twin(court.sandbox, task, memory, kit)
    workspace = order.workspace_bytes > 0
    shim = builder.call_shim(court.sandbox, task, order.language, workspace)
    with (
        contextlib.closing(Arena(task, [work.sizes], order.workspace_bytes, memory)) as arena,
        court.timing(work.watch),
    ):
        session = Session(task, bytes.fromhex(order.seed), arena, work.watch)
        prepared = session.prepare(Case(STAGE, "0", work.sizes), twin.oracle)
        runner = Runner(work.sandbox, work.folder, artifact, shim, arena, court.cores.timing, workspace, kit=kit)
        with contextlib.closing(runner):
            runner.load(timed=False)
            session.call(runner, prepared, TimeLimits().now_ns)
        yield Checked(artifact, shim, arena, session, prepared)


# On a CPU


def on_a_cpu(work: Work, profiler: Profiler) -> ProfileReport:
    """Have a small program call the submission under the profiler."""
    with recording_file() as file:
        with checked(work, profiler.flags()) as submission:
            calls = replay(work, profiler, submission, file)
        return found(work, profiler, submission.artifact, file, calls)


def replay(work: Work, profiler: Profiler, submission: Checked, file: IO[bytes]) -> int:
    """Call the submission under the profiler, which writes to `file`; how many calls came back.

    Raises:
        Rejected: it ends or hangs with the profiler, as it did not without.
    """
    program, arena = helper.replay_program(), submission.arena
    libraries = [submission.shim, submission.artifact.path]
    slots = submission.inputs()  # in-out arguments must be as before the call
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


def found(work: Work, profiler: Profiler, artifact: Artifact, file: IO[bytes], calls: int) -> ProfileReport:
    """The report of a profile that was made."""
    order = work.order
    counts = profiler.read(Recording(file, artifact.path, work.sandbox, work.folder))
    circumstances = (profiler.unit, calls, profiler.preset, work.sizes)
    counted = counters(counts, *circumstances, source_name(work), order.source or "")
    text = report_text(order.kernel, order.tool, counted)
    return ProfileReport(tool=order.tool, outcome=Outcome.SOLVED, report=text, counters=counted)


# On a GPU


def on_a_gpu(work: Work, profiler: GpuProfiler) -> ProfileReport | Lacking:
    """Have a runner call the submission under the profiler, which writes to a folder of the profile's own."""
    order, court = work.order, work.court
    written, folders = work.folder / STAGE, profiler.folders()
    written.mkdir()
    compiling_s = COMPILE_LIMIT_S if order.language is Language.TRITON else 0
    with checked(work) as submission:
        shared = (submission.artifact, submission.shim, submission.arena, court.cores.timing)
        made = Unattended(work.sandbox, written, *shared, order.workspace_bytes > 0, court.kit)
        with contextlib.closing(made) as runner:

            def run(argv: Sequence[str], limit_s: float) -> Completed:
                return runner.run(argv, limit_s, folders, submission.inputs())

            try:
                findings = watch(profiler, runner.argv, written, run, lambda: runner.in_call, WALL_S + compiling_s)
            except EnvironmentFault as fault:
                return Lacking(why=str(fault))
    return gpu_report.told(order.kernel, order.tool, findings, 1, profiler.preset, work.sizes)


def failed(tool: ProfileTool, verdict: Rejected) -> ProfileReport:
    return ProfileReport(
        tool=tool,
        outcome=verdict.outcome,
        property=verdict.property,
        detail=verdict.detail,
        log=verdict.log,
    )
