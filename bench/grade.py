"""A grade, from source to verdict: build → verify → time → hold out → confirm → credit. The page to read first."""

import contextlib
import contextvars
import functools
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from bench import evaluation, provenance, race
from bench.build import builder
from bench.build.toolchain import Artifact
from bench.court import Court
from bench.errors import BaselineFault, KernelcourtError
from bench.gates import artifacts, leftovers, plausibility, sanitizers
from bench.inputs import Case, edge_cases, fuzzed_cases, round_sizes, timed_sizes
from bench.judge.schemas import Device, Language, Outcome
from bench.measure.protocols import Protocol, ProtocolRole, find_protocol
from bench.measure.quiet import Lookout
from bench.measure.sampling import Sides, TimeLimits, baseline_fault, time_inputs
from bench.measure.session import Session
from bench.measure.statistics import geometric_mean, hodges_lehmann
from bench.measure.stopwatch import Stopwatch
from bench.race import Contender, Kept, Race
from bench.records import Cell, GradeOrder, GradeReport, SourceFile
from bench.reference import OracleOf, Twin
from bench.reverify import reverify
from bench.runner.buffers import Arena
from bench.runner.memory import Placement
from bench.runner.runner import Runner
from bench.sandbox import scratch_folder
from bench.seeds import commitment
from bench.task import Task, find_task
from bench.verdict import BY_MAKE, Rejected

HELD_OUT_CASES = 4


@dataclass
class Work:
    """One grade in progress: its order, and what has been found so far."""

    order: GradeOrder
    task: Task
    court: Court
    folder: Path
    watch: Stopwatch = field(default_factory=Stopwatch)
    cells: list[Cell] = field(default_factory=list)
    provenance: dict[str, Any] = field(default_factory=dict)
    flag: str | None = None
    before: dict[str, Any] = field(init=False)
    entrants: tuple[Contender, ...] = field(init=False)
    denominator: Contender = field(init=False)

    def __post_init__(self) -> None:
        self.before = provenance.machine_state(self.court)
        self.entrants, left_out = race.contenders(self.task, self.court.kit)
        self.denominator = self.entrants[0]
        if self.is_timed and not self.protocol.against_itself:
            self.provenance["denominator_policy"] = race.policy(self.entrants)
            if left_out:
                self.provenance["race_left_out"] = left_out

    @property
    def seed(self) -> bytes:
        return bytes.fromhex(self.order.seed)

    @property
    def protocol(self) -> Protocol:
        return find_protocol(self.order.protocol)

    @property
    def is_preview(self) -> bool:
        return self.protocol.role is ProtocolRole.PREVIEW

    @property
    def device(self) -> Device:
        return self.court.device_of(self.order.language)

    @property
    def is_timed(self) -> bool:
        return self.device is not Device.EMULATED

    @cached_property
    def correctness(self) -> list[Case]:
        return correctness_cases(self.task, self.seed)

    @property
    def round_case(self) -> Case:
        """An input of the timed ones' magnitude, whose sizes are powers of two."""
        return Case("held", "round", round_sizes(self.task, self.order.preset))

    @cached_property
    def held_out(self) -> list[Case]:
        return held_out_cases(self.task, self.seed)

    def timed(self, index: int) -> dict[str, int]:
        """Sizes of one timed input."""
        return timed_sizes(self.task, self.seed, self.order.preset, index)


def correctness_cases(task: Task, seed: bytes) -> list[Case]:
    """Edge and fuzzed inputs of a grade."""
    return [*edge_cases(task, seed, "verify"), *fuzzed_cases(task, seed, "verify")]


def held_out_cases(task: Task, seed: bytes) -> list[Case]:
    """Inputs that no other call of the grade uses."""
    return list(fuzzed_cases(task, seed, "held", HELD_OUT_CASES))


def grade(order: GradeOrder, court: Court, task: Task | None = None) -> GradeReport:
    """Grade one submission. Whatever goes wrong is an outcome: the submission's, or `judge_fault`.

    The kernel is the corpus's own of that name, unless `task` is given.

    Raises:
        UsageError: unknown kernel or protocol, or a language that is not graded here (nothing was graded).
    """
    task = task or find_task(order.kernel)
    find_protocol(order.protocol)
    court.device_of(order.language)
    if court.gpu:
        task = task.gpu_track
    with scratch_folder() as folder:
        work = Work(order, task, court, folder)
        try:
            with court.building(work.watch):
                measure(work)
                if work.protocol.role is ProtocolRole.FINAL:
                    confirm(work)
        except Rejected as verdict:
            return failed(work, verdict)
        except (KernelcourtError, OSError, MemoryError) as fault:
            return failed(work, Rejected(Outcome.JUDGE_FAULT, "judge", {"message": str(fault) or repr(fault)}))
        return solved(work)


def measure(work: Work) -> None:
    """Every call that the grade consists of, in one process of each side."""
    settled = work.is_timed and settle(work)
    with (
        build_beside(work) as wait_for_build,
        start_runners(work, settled) as (arena, candidate, denominator),
    ):
        wait_for_build()
        with on_timing_cores(work, arena, candidate) as session:
            verify(work, session, candidate)
            twin = time_both_sides(work, session, candidate, denominator) if work.is_timed else None
            hold_out(work, session, candidate, twin)
            leftovers.check(candidate.children())


# Build


@contextlib.contextmanager
def build_beside(work: Work) -> Iterator[Callable[[], None]]:
    """Build in a thread while the runners start; the yielded function waits for it, and raises what it raised."""
    begun = time.perf_counter()
    ended: list[float] = []
    with ThreadPoolExecutor(1) as thread:
        building = thread.submit(contextvars.copy_context().run, build, work)
        building.add_done_callback(lambda _: ended.append(time.perf_counter()))

        def wait() -> None:
            try:
                building.result()
            finally:
                work.watch.note("build", (ended or [time.perf_counter()])[0] - begun)

        yield wait


def build(work: Work) -> None:
    """Make the submission's artifact, and look at it before anything of it runs."""
    order = work.order
    if work.protocol.against_itself:
        work.provenance["build"] = provenance.build_facts(candidate_artifact(work))
        return
    if order.library is None:
        work.provenance["build"] = provenance.planned_build(order.language, work.task.name, work.court.kit)
    if order.binding:
        work.provenance["binding"] = True
    if order.workspace_bytes:
        work.provenance["workspace_bytes"] = order.workspace_bytes
    try:
        built, noted = artifacts.make(work.court.sandbox, work.folder, work.task, order, kit=work.court.kit)
    finally:
        if order.library is not None:
            work.provenance["library"] = provenance.library_facts(candidate_artifact(work).path)
    work.provenance["build"] = provenance.build_facts(built) | noted


def candidate_artifact(work: Work) -> Artifact:
    """The file that the candidate's runner will load; it need not be there yet."""
    task = work.task
    if work.protocol.against_itself:
        return builder.denominator(work.court.sandbox, task.baselines[0], work.court.kit)
    return artifacts.planned(work.folder, task, work.order)


# Runners


@contextlib.contextmanager
def start_runners(work: Work, settled: bool) -> Iterator[tuple[Arena, Runner, Runner | None]]:
    """The judge's buffers and both sides' processes in their sandboxes, all of it gone afterwards.

    The processes wait there and have loaded nothing. There is no denominator where it is not `settled`.
    """
    task, order = work.task, work.order
    plan = [case.sizes for case in (*work.correctness, *work.held_out)]
    if work.is_timed:
        plan.append(work.round_case.sizes)
        plan += map(work.timed, range(work.protocol.inputs))
    with contextlib.ExitStack() as stack:
        made = Arena(task, plan, order.workspace_bytes, work.court.memory)
        arena = stack.enter_context(contextlib.closing(made))
        workspace = order.workspace_bytes > 0
        candidate = stack.enter_context(start_runner(work, candidate_artifact(work), arena, workspace))
        denominator = None
        if settled:
            denominator = stack.enter_context(start_baseline(work, work.denominator, arena))
        yield arena, candidate, denominator


def start_runner(work: Work, artifact: Artifact, arena: Arena, workspace: bool = False) -> "contextlib.closing[Runner]":
    court = work.court
    with work.watch.stage("build"):
        shim = builder.call_shim(court.sandbox, work.task, artifact.language, workspace)
    runner = Runner(court.sandbox, work.folder, artifact, shim, arena, court.cores.timing, workspace, kit=court.kit)
    return contextlib.closing(runner)


def start_baseline(work: Work, contender: Contender, arena: Arena) -> "contextlib.closing[Runner]":
    sizes = [*map(work.timed, range(work.protocol.inputs))]
    return race.started(contender, work.court, work.folder, arena, sizes, work.watch)


def load_baseline(work: Work, baseline: Runner) -> None:
    """Raises JudgeFault when a baseline does not load, which is never the submission's fault."""
    try:
        with work.watch.stage("start"):
            baseline.load()
    except Rejected as error:
        raise baseline_fault(work.task, error) from error


@contextlib.contextmanager
def on_timing_cores(work: Work, arena: Arena, candidate: Runner) -> Iterator[Session]:
    """Hold the timing cores, with the candidate loaded; but for a preview, note whether the machine was quiet."""
    with work.court.timing(work.watch):
        lookout = None if work.is_preview else Lookout(work.court.cores)
        try:
            # Triton compiles when it is loaded.
            with work.watch.stage("build" if work.order.language is Language.TRITON else "start"):
                candidate.load()
            work.provenance["stance"] = "checked" if candidate.placed else "not applied (Linux does not tell)"
            yield Session(work.task, work.seed, arena, work.watch)
        finally:
            if lookout:
                work.provenance["quiet"] = lookout.warnings()


# Verify, time, hold out


def verify(work: Work, session: Session, candidate: Runner) -> None:
    """Edge and fuzzed inputs against the NumPy reference, two of them flush against a guard page."""
    placements = {0: Placement.TAIL, 1: Placement.HEAD}
    limits = TimeLimits()
    for number, case in enumerate(work.correctness):
        prepared = session.prepare(case, placement=placements.get(number, Placement.MIDDLE))
        limits.saw_candidate(session.call(candidate, prepared, limits.now_ns).elapsed_ns)


def time_both_sides(work: Work, session: Session, candidate: Runner, denominator: Runner | None) -> Twin:
    """Candidate and denominator interleaved on the same buffers, every output compared with the twin; returns that."""
    with work.watch.stage("build"):
        twin = Twin(work.court.sandbox, work.task, work.court.memory, work.court.kit)
    with contextlib.ExitStack() as stack:
        if denominator is None:
            have_race(work, session, twin.oracle)
            denominator = stack.enter_context(start_baseline(work, work.denominator, session.arena))
        work.provenance["build"] |= {
            "denominator": provenance.build_facts(work.denominator.build(work.court.sandbox, work.court.kit)),
            "twin": provenance.build_facts(twin.built),
        }
        stack.enter_context(leaving_out(work))
        load_baseline(work, denominator)
        sides = Sides(candidate, denominator)
        sides.share_empty_call()
        try:
            work.cells += time_inputs(session, sides, work.protocol, work.order.preset, twin.oracle)
        finally:
            work.provenance["clock"] = provenance.clock_figures(sides)
            work.provenance["scheduling"] = "real-time" if candidate.urgent else "fair"
    return twin


def settle(work: Work) -> bool:
    """Whether the denominator is known before anything of the submission runs; on a CPU several race in the grade."""
    if len(work.entrants) > 1 and not work.protocol.against_itself:
        if not work.court.gpu:
            return False
        with work.watch.stage("race"):
            decide(work, race.outcome(work.task, work.order.preset, work.court))
    return True


def have_race(work: Work, session: Session, oracle_of: OracleOf) -> None:
    """Let the baselines race on the first timed input."""
    start = functools.partial(start_baseline, work, arena=session.arena)
    decide(work, race.race(session, work.entrants, start, work.order.preset, oracle_of))


def decide(work: Work, found: Race) -> None:
    """Make the fastest of a race the denominator; all its times are recorded."""
    work.denominator = next(one for one in work.entrants if one.name == found.fastest)
    work.provenance["race_ns"] = found.medians_ns
    if found.left_out:
        work.provenance["race_left_out"] = found.left_out


@contextlib.contextmanager
def leaving_out(work: Work) -> Iterator[None]:
    """A denominator in PyTorch that fails now, other than in its race, is none in later grades."""
    try:
        yield
    except BaselineFault as fault:
        if work.denominator.mode:
            Kept.of(work.task, work.order.preset, work.court).leave_out(work.denominator.name, str(fault))
        raise


def hold_out(work: Work, session: Session, candidate: Runner, twin: Twin | None) -> None:
    """Cases that no other call uses and their twins, last and warm in the same process; a preview has none.

    What is not timed is called on no input as large as the timed ones.
    """
    if work.is_preview:
        return
    limits = TimeLimits()
    for case in work.held_out:
        for same_but_one in (case, replace(case, twin=True)):
            prepared = session.prepare(same_but_one)
            limits.saw_candidate(session.call(candidate, prepared, limits.now_ns).elapsed_ns)
    if twin is None:
        return
    limits = TimeLimits()
    limits.saw_denominator(max(ns for cell in work.cells for ns in cell.denominator_ns))
    session.call(candidate, session.prepare(work.round_case, twin.oracle), limits.now_ns)


# Confirm


def confirm(work: Work) -> None:
    """What counts is made once more from its source, and looked into by the judge's evaluation tools."""
    order, task, court = work.order, work.task, work.court
    if order.library is not None:  # the copy that was graded, whatever its owner has put in its place
        order = order.model_copy(update={"library": str(candidate_artifact(work).path)})
    with work.watch.stage("reverify"):
        work.provenance["reverify"] = reverify(order, task, court, work.watch)
    with work.watch.stage("tools"):
        results = sanitizers.evaluate(court.tools, order, task, court)
    work.provenance["tools"] = evaluation.provenance(court.tools, results)
    if found := evaluation.rejects(results):
        message = f"{found.why} (found by the tool '{found.tool}'); the log says where"
        raise Rejected(Outcome.WRONG, "sanitizer", {"message": message, "tool": found.tool}, found.log)
    work.flag = evaluation.flags(results)


# Report


def solved(work: Work) -> GradeReport:
    """The report of a submission that passed every stage: its credit, where it was timed, if that is plausible."""
    if not work.is_timed:
        return GradeReport(outcome=Outcome.SOLVED, suspect=work.flag, **facts(work))
    floor = plausibility.check(work.task, work.cells, work.court)
    work.provenance["plausibility"] = floor.note
    suspect = floor.suspect or work.flag
    return GradeReport(outcome=Outcome.SOLVED, suspect=suspect, **credit(work.cells), **facts(work))


def failed(work: Work, verdict: Rejected) -> GradeReport:
    """The report of a grade that a stage ended; values and logs are in it as far as the order discloses them."""
    work.provenance["finding"] = verdict.detail
    disclose = work.order.disclose
    return GradeReport(
        outcome=verdict.outcome,
        property=verdict.property,
        detail=verdict.detail if disclose or verdict.property in BY_MAKE else {},
        log=verdict.log if disclose or verdict.outcome is Outcome.BUILD_FAILED else "",
        **facts(work),
    )


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


def facts(work: Work) -> dict[str, Any]:
    """What every report holds, whatever came of the grade."""
    order, court = work.order, work.court
    source, name = work.denominator.source, work.denominator.name
    circumstances = provenance.circumstances(court, source, name, work.cells, work.before)
    return {
        "grade_id": order.grade_id,
        "protocol": order.protocol,
        "preset": order.preset,
        "cells": tuple(work.cells),
        "denominator": work.denominator.name if work.is_timed else None,
        "task_hash": work.task.hash,
        "policy_stamp": race.policy_stamp(work.task, work.court.kit),
        "seed_commitment": commitment(work.seed),
        "sandbox": str(court.sandbox.level),
        "device": work.device,
        "provenance": {**work.provenance, **circumstances},
        "sources": tuple(sources(work)),
        "stages_ms": work.watch.stages_ms(),
        "overhead_ms": work.watch.overhead_ms(),
    }


def sources(work: Work) -> Iterator[SourceFile]:
    """Every text that defines the grade."""
    order, kernel = work.order, work.task.name
    if order.source is not None:
        name = f"{kernel}{order.language.suffix}"
        yield SourceFile(role="submission", name=name, content=order.source.encode(errors="replace"))
    raced = {f"baseline:{one.source.name}": one.source.read_bytes() for one in work.entrants}
    for role, content in (work.task.files | raced).items():
        yield SourceFile(role=role, name=role.partition(":")[2] or role, content=content)
    yield provenance.toolchains_source()
