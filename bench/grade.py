"""A grade, from source to verdict: build → verify → time → hold out → gates → credit. The page to read first."""

import contextlib
import contextvars
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from bench import provenance
from bench.build import builder
from bench.build.toolchain import Artifact
from bench.court import Court
from bench.errors import JudgeFault, KernelcourtError
from bench.gates import leftovers, plausibility
from bench.inputs import Case, edge_cases, fuzzed_cases, timed_sizes
from bench.judge.schemas import Language, Outcome
from bench.measure.protocols import Protocol, ProtocolRole, find_protocol
from bench.measure.quiet import Lookout
from bench.measure.sampling import Sides, TimeLimits, race_ns, time_inputs
from bench.measure.session import OracleOf, Session
from bench.measure.statistics import geometric_mean, hodges_lehmann
from bench.measure.stopwatch import Stopwatch
from bench.records import Cell, GradeOrder, GradeReport, SourceFile
from bench.reference import Inputs, Twin, numpy_oracle
from bench.runner.buffers import Arena, Placement
from bench.runner.runner import Runner
from bench.sandbox import scratch_folder
from bench.seeds import commitment
from bench.task import Sizes, Task, find_task
from bench.tolerance import Oracle
from bench.verdict import Rejected

HELD_OUT_CASES = 4


@dataclass
class Work:
    """One grade in progress: what it was asked, and what has been found so far."""

    order: GradeOrder
    task: Task
    court: Court
    folder: Path
    watch: Stopwatch = field(default_factory=Stopwatch)
    cells: list[Cell] = field(default_factory=list)
    provenance: dict[str, Any] = field(default_factory=dict)
    before: dict[str, Any] = field(init=False)
    denominator: Path = field(init=False)

    def __post_init__(self) -> None:
        self.before = provenance.machine_state(self.court)
        self.denominator = self.task.baselines[0]

    @property
    def seed(self) -> bytes:
        return bytes.fromhex(self.order.seed)

    @cached_property
    def correctness(self) -> list[Case]:
        """Edge and fuzzed inputs of this grade."""
        return correctness_cases(self.task, self.seed)

    @cached_property
    def held_out(self) -> list[Case]:
        """Inputs that no other call uses."""
        return held_out_cases(self.task, self.seed)

    @property
    def protocol(self) -> Protocol:
        return find_protocol(self.order.protocol)

    @property
    def races(self) -> bool:
        """Whether several baselines race for being the denominator."""
        return len(self.task.baselines) > 1 and not self.protocol.against_itself


def grade(order: GradeOrder, court: Court, task: Task | None = None) -> GradeReport:
    """Grade one submission. Whatever goes wrong is an outcome: the submission's, or `judge_fault`.

    The kernel is the corpus's own of that name, unless `task` is given.

    Raises:
        UsageError: unknown kernel or protocol (nothing was graded).
    """
    task = task or find_task(order.kernel)
    find_protocol(order.protocol)
    with scratch_folder() as folder:
        work = Work(order, task, court, folder)
        try:
            with court.building(work.watch), building(work) as built, seats(work) as (arena, runner, denominator):
                built()
                with bench(work, arena, runner) as session:
                    verify(work, session, runner)
                    time_both_sides(work, session, runner, denominator)
                    hold_out(work, session, runner)
                    leftovers.check(runner)
        except Rejected as verdict:
            return report(work, verdict)
        except (KernelcourtError, OSError, MemoryError) as fault:
            return report(work, Rejected(Outcome.JUDGE_FAULT, "judge", {"message": str(fault) or repr(fault)}))
        return report(work)


@contextlib.contextmanager
def seats(work: Work) -> Iterator[tuple[Arena, Runner, Runner | None]]:
    """The judge's buffers, and both sides' processes behind their walls; all of it gone afterwards.

    They wait there, at no cost to anybody, while the submission is compiled. There is no denominator yet where
    several baselines race for it.
    """
    task, order = work.task, work.order
    plan = [case.sizes for case in (*work.correctness, *work.held_out)]
    plan += [timed_sizes(task, work.seed, order.preset, index) for index in range(work.protocol.inputs)]
    with contextlib.ExitStack() as stack:
        arena = stack.enter_context(contextlib.closing(Arena(task, plan, order.workspace_bytes)))
        runner = stack.enter_context(seat(work, expected(work), arena, workspace=order.workspace_bytes > 0))
        denominator = None
        if not work.races:
            denominator = stack.enter_context(seat_denominator(work, work.denominator, arena))
        yield arena, runner, denominator


def seat(work: Work, artifact: Artifact, arena: Arena, workspace: bool = False) -> "contextlib.closing[Runner]":
    """One side's process, started and waiting to be let in."""
    court = work.court
    with work.watch.stage("build"):
        shim = builder.call_shim(court.sandbox, work.task, artifact.language, workspace)
    runner = Runner(court.sandbox, work.folder, artifact, shim, work.task.name, arena, court.cores.timing, workspace)
    return contextlib.closing(runner)


def seat_denominator(work: Work, path: Path, arena: Arena) -> "contextlib.closing[Runner]":
    """The process of a baseline, waiting as well."""
    with work.watch.stage("build"):
        baseline = builder.denominator(work.court.sandbox, path)
    return seat(work, baseline, arena)


def expected(work: Work) -> Artifact:
    """The submission as a loadable file, which need not be there yet."""
    order, task = work.order, work.task
    if work.protocol.against_itself:
        return builder.denominator(work.court.sandbox, task.baselines[0])
    if order.library is not None:
        return Artifact(Path(order.library), order.language)
    return Artifact(builder.built_path(work.folder, task, order.language), order.language)


@contextlib.contextmanager
def building(work: Work) -> Iterator[Callable[[], None]]:
    """The build runs while the seats are prepared; what is given waits for it and raises what it raised."""
    begun = time.perf_counter()
    with ThreadPoolExecutor(1) as thread:
        task = thread.submit(contextvars.copy_context().run, build, work)
        ended: list[float] = []
        task.add_done_callback(lambda _: ended.append(time.perf_counter()))

        def built() -> None:
            try:
                task.result()
            finally:
                work.watch.note("build", (ended or [time.perf_counter()])[0] - begun)

        yield built


def build(work: Work) -> None:
    """Compile the submission in the sandbox, where it is delivered as source."""
    order = work.order
    if order.library is not None:
        work.provenance["library"] = provenance.library_facts(Path(order.library))
    if work.protocol.against_itself or order.source is None:
        work.provenance["build"] = provenance.build_facts(expected(work))
        return
    work.provenance["build"] = provenance.planned_build(order.language, work.task.name)
    built = builder.build_submission(work.court.sandbox, work.folder, work.task, order.language, order.source)
    work.provenance["build"] = provenance.build_facts(built)


@contextlib.contextmanager
def bench(work: Work, arena: Arena, runner: Runner) -> Iterator[Session]:
    """The candidate loaded on the judge's buffers, with the timing cores held."""
    with work.court.timing(work.watch), lookout(work):
        with work.watch.stage("start"):
            runner.load()
        work.provenance["stance"] = "checked" if runner.placed else "not applied (the kernel does not tell)"
        yield Session(work.task, work.seed, arena, work.watch)


@contextlib.contextmanager
def lookout(work: Work) -> Iterator[None]:
    """Notes whether the machine was quiet meanwhile, whatever comes of the grade; a preview does without."""
    if work.protocol.role is ProtocolRole.PREVIEW:
        yield
        return
    seen = Lookout(work.court.cores)
    try:
        yield
    finally:
        work.provenance["quiet"] = seen.warnings()


def let_in(work: Work, denominator: Runner) -> None:
    """Load the denominator; raises JudgeFault when it does not start, which no submission can help."""
    try:
        with work.watch.stage("start"):
            denominator.load()
    except Rejected as error:
        raise JudgeFault(f"the denominator of {work.task.name} did not start: {error}: {error.detail}") from error


def correctness_cases(task: Task, seed: bytes) -> list[Case]:
    return [*edge_cases(task, seed, "verify"), *fuzzed_cases(task, seed, "verify")]


def held_out_cases(task: Task, seed: bytes) -> list[Case]:
    return list(fuzzed_cases(task, seed, "held", HELD_OUT_CASES))


def verify(work: Work, session: Session, runner: Runner) -> None:
    """Edge and fuzzed inputs against the NumPy reference, two of them flush against a guard page."""
    placements = {0: Placement.TAIL, 1: Placement.HEAD}
    limits = TimeLimits()
    for number, case in enumerate(work.correctness):
        prepared = session.prepare(case, numpy_oracle, placements.get(number, Placement.MIDDLE))
        limits.saw_candidate(session.call(runner, prepared, limits.now_ns).elapsed_ns)


def time_both_sides(work: Work, session: Session, runner: Runner, denominator: Runner | None) -> None:
    """Candidate and denominator interleaved on the same buffers, every output compared with the float64 twin."""
    with work.watch.stage("build"):
        twin = Twin(work.court.sandbox, work.task)

    def oracle(_: Task, inputs: Inputs, sizes: Sizes) -> Oracle:
        return twin.oracle(inputs, sizes)

    with contextlib.ExitStack() as stack:
        if denominator is None:
            race(work, session, oracle)
            denominator = stack.enter_context(seat_denominator(work, work.denominator, session.arena))
        work.provenance["build"] |= {
            "denominator": provenance.build_facts(builder.denominator(work.court.sandbox, work.denominator)),
            "twin": provenance.build_facts(twin.built),
        }
        let_in(work, denominator)
        sides = Sides(runner, denominator)
        try:
            work.cells += time_inputs(session, sides, work.protocol, work.order.preset, oracle)
        finally:
            work.provenance["clock"] = provenance.clock_figures(sides)
            work.provenance["scheduling"] = "real-time" if runner.urgent else "fair"


def race(work: Work, session: Session, oracle: OracleOf) -> None:
    """Make the fastest of several baselines the denominator; all their times are recorded."""
    times: dict[Path, int] = {}
    for path in work.task.baselines:
        with seat_denominator(work, path, session.arena) as runner:
            let_in(work, runner)
            times[path] = race_ns(session, runner, work.order.preset, oracle)
    work.denominator = min(times, key=times.__getitem__)
    work.provenance["race_ns"] = {path.name: elapsed for path, elapsed in times.items()}


def hold_out(work: Work, session: Session, runner: Runner) -> None:
    """Cases that no other call uses and their twins, last and warm in the same process (final protocols only)."""
    if work.protocol.role is ProtocolRole.PREVIEW:
        return
    limits = TimeLimits()
    for case in work.held_out:
        for same_but_one in (case, replace(case, twin=True)):
            prepared = session.prepare(same_but_one, numpy_oracle)
            limits.saw_candidate(session.call(runner, prepared, limits.now_ns).elapsed_ns)


def report(work: Work, verdict: Rejected | None = None) -> GradeReport:
    """Everything that was found, credited only when nothing rejected it."""
    order, court = work.order, work.court
    facts: dict[str, Any] = {
        "grade_id": order.grade_id,
        "protocol": order.protocol,
        "preset": order.preset,
        "cells": tuple(work.cells),
        "denominator": work.denominator.name,
        "task_hash": work.task.hash,
        "policy_stamp": builder.policy_stamp(work.task),
        "seed_commitment": commitment(work.seed),
        "sandbox": str(court.sandbox.level),
        "provenance": {
            **work.provenance,
            **provenance.circumstances(court, work.denominator, work.cells, work.before),
        },
        "sources": tuple(_sources(work)),
        "stages_ms": work.watch.stages_ms(),
        "overhead_ms": work.watch.overhead_ms(),
    }
    if verdict is None:
        floor = plausibility.check(work.task, work.cells, len(court.cores.timing))
        facts["provenance"]["plausibility"] = floor.note
        return GradeReport(outcome=Outcome.SOLVED, suspect=floor.suspect, **facts, **credit(work.cells))
    facts["provenance"]["finding"] = verdict.detail
    shown = verdict.detail if order.disclose else {}
    log = verdict.log if order.disclose or verdict.outcome is Outcome.BUILD_FAILED else ""
    return GradeReport(outcome=verdict.outcome, property=verdict.property, detail=shown, log=log, **facts)


def credit(cells: list[Cell]) -> dict[str, Any]:
    """S with the interval of the raw ratio; `faster` when the interval's lower bound exceeds 1."""
    candidate = [cell.candidate_ns for cell in cells]
    denominator = [cell.denominator_ns for cell in cells]
    centre, low, high = hodges_lehmann(candidate, denominator)
    return {
        "score": geometric_mean([cell.ratio for cell in cells]),
        "raw_ratio": centre,
        "interval": (low, high),
        "faster": low > 1,
    }


def _sources(work: Work) -> Iterator[SourceFile]:
    if work.order.source is not None:
        suffix = Language(work.order.language).suffix
        yield SourceFile(role="submission", name=f"{work.task.name}{suffix}", content=work.order.source.encode())
    for role, content in work.task.files.items():
        yield SourceFile(role=role, name=role.partition(":")[2] or role, content=content)
    yield provenance.toolchains_source()
