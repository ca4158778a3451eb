"""Runs a calibration of this machine: A/A grades, ladder grades (all by the usual path), bandwidths and peaks."""

import platform
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from bench import process, seeds
from bench.court import Court
from bench.devices import cpu
from bench.errors import JudgeFault, UsageError
from bench.grade import grade
from bench.judge.schemas import Kind, Language, Outcome, Preset
from bench.measure import ceilings, ladder, summaries
from bench.measure.calibration import Calibration, Ceilings, Rung
from bench.measure.protocols import find_protocol
from bench.measure.quiet import Lookout
from bench.measure.stopwatch import Stopwatch
from bench.records import GradeOrder, GradeReport
from bench.sandbox import scratch_folder
from bench.task import Task
from bench.version import commit, package_version
from bench.worker import order_of

AGAINST_ITSELF, LADDER_PROTOCOL, PYTHON_PROTOCOL = "mw4x5-aa", "mw4x5", "mw2x5"
PYTHON_GRADES = 5

# Told before each grade: what is measured, which number it has, of how many.
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Plan:
    """How much to measure: at least `inputs` timed A/A inputs over tasks and presets in turn; ladder grades a rung."""

    tasks: tuple[Task, ...]
    presets: tuple[Preset, ...]
    inputs: int
    rung_grades: int
    ladder_preset: Preset
    quick: bool

    @property
    def tracks(self) -> list[tuple[Task, Preset]]:
        return [(task, preset) for task in self.tasks for preset in self.presets]

    @property
    def aa_grades(self) -> int:
        return -(-self.inputs // find_protocol(AGAINST_ITSELF).inputs)


def plan(tasks: Sequence[Task], inputs: int, quick: bool) -> Plan:
    """The plan of a whole calibration, or of a quick one (small sizes, one ladder grade a rung).

    Raises:
        UsageError: no kernel, one for GPUs alone, or no input.
    """
    if not tasks or inputs < 1:
        raise UsageError("a calibration needs at least one kernel and one timed input; see --kernels and --inputs")
    if without := [task.name for task in tasks if not task.baselines]:
        raise UsageError(f"a calibration is of this CPU, and for GPUs alone are: {', '.join(without)}; take others")
    if quick:
        return Plan(tuple(tasks), (Preset.S, Preset.M), inputs, 1, Preset.M, quick)
    return Plan(tuple(tasks), (Preset.M, Preset.L, Preset.XL), inputs, 20, Preset.XL, quick)


def calibrate(court: Court, wanted: Plan, progress: Progress) -> Calibration:
    """Measure all of it, on the court's own cores.

    Raises:
        JudgeFault: one of the judge's own kernels was not solved.
        EnvironmentFault: a compiler is missing.
    """
    started, begun, lookout = datetime.now(UTC), time.monotonic(), Lookout(court.cores)
    process.adopt_orphans()
    first = machine_ceilings(court)
    own = [*against_itself(court, wanted, progress)]
    python = [*python_grades(court, progress)]
    rungs = [climb(court, wanted, step, progress) for step in ladder.STEPS]
    machine = cpu.description()
    covered, of = sum(found.covered for found in rungs), sum(found.raw.of for found in rungs)
    return Calibration(
        made_at=started.isoformat(timespec="seconds"),
        host=platform.node(),
        cpu_model=str(machine["cpu_model"]),
        machine_cores=int(machine["cores"]),
        kernel_release=str(machine["kernel"]),
        package_version=package_version(),
        package_commit=commit(),
        sandbox=str(court.sandbox.level),
        timing_cores=court.cores.timing,
        clock_core=court.cores.clock,
        quick=wanted.quick,
        seconds=round(time.monotonic() - begun, 1),
        quiet=tuple(lookout.warnings()),
        empty_call_ns=summaries.spread([*empty_calls(report for _, report in own)]),
        empty_python_call_ns=summaries.spread([report.provenance["clock"]["empty_candidate_ns"] for report in python]),
        against_itself=summaries.against_itself(AGAINST_ITSELF, own),
        ladder_preset=wanted.ladder_preset,
        ladder=tuple(rungs),
        ladder_covered=summaries.share(covered, of),
        # Twice, because another tenant of the machine may slow one of them.
        ceilings=ceilings.better(first, machine_ceilings(court)),
    )


def machine_ceilings(court: Court) -> Ceilings:
    """Rates of the court's timing cores while it holds them."""
    watch = Stopwatch()
    with court.building(watch), court.timing(watch):
        return ceilings.measure(court.cores.timing)


def against_itself(court: Court, wanted: Plan, progress: Progress) -> Iterator[tuple[str, GradeReport]]:
    """A/A grades, over kernels and presets in turn."""
    tracks = wanted.tracks
    for number in range(wanted.aa_grades):
        task, preset = tracks[number % len(tracks)]
        progress(f"A/A {task.name} {preset}", number, wanted.aa_grades)
        yield task.name, solved(order_of(task, task.baselines[0], preset, AGAINST_ITSELF), court, task)


def climb(court: Court, wanted: Plan, step: ladder.Step, progress: Progress) -> Rung:
    """Grades of one ladder kernel, whose true ratio is `step.truth`."""
    reports = []
    with scratch_folder() as folder:
        task = ladder.write(folder, step)
        for number in range(wanted.rung_grades):
            progress(f"ladder {step.truth:.2f}", number, wanted.rung_grades)
            order = ladder_order(
                wanted.ladder_preset, Language.C, ladder.source(ladder.CANDIDATE_UNITS), LADDER_PROTOCOL
            )
            reports.append(solved(order, court, task))
    raws = [report.raw_ratio for report in reports if report.raw_ratio is not None]
    return summaries.rung(step.truth, raws, [report.interval for report in reports if report.interval is not None])


def python_grades(court: Court, progress: Progress) -> Iterator[GradeReport]:
    """Grades of a small kernel in Python, for the empty call of its runner."""
    with scratch_folder() as folder:
        task = ladder.write(folder, ladder.STEPS[0])
        for number in range(PYTHON_GRADES):
            progress("Python's empty call", number, PYTHON_GRADES)
            order = ladder_order(Preset.S, Language.PYTHON, ladder.PYTHON_SOURCE, PYTHON_PROTOCOL)
            yield solved(order, court, task)


def ladder_order(preset: Preset, language: Language, source: str, protocol: str) -> GradeOrder:
    """An order that grades a source for a ladder kernel."""
    return GradeOrder(
        grade_id=str(uuid.uuid4()),
        kind=Kind.CALIBRATION,
        kernel=ladder.NAME,
        language=language,
        source=source,
        preset=preset,
        protocol=protocol,
        seed=seeds.new_root().hex(),
    )


def solved(order: GradeOrder, court: Court, task: Task) -> GradeReport:
    """A grade of trusted code; raises JudgeFault when it is anything but solved."""
    report = grade(order, court, task)
    process.sweep()
    if report.outcome is not Outcome.SOLVED:
        finding = report.provenance.get("finding")
        raise JudgeFault(f"calibration stops: the judge's own {task.name} is {report.outcome}: {finding} {report.log}")
    return report


def empty_calls(reports: Iterable[GradeReport]) -> Iterator[float]:
    """ns of an empty call of every runner of these grades, both sides."""
    for report in reports:
        clock = report.provenance["clock"]
        yield from (float(clock["empty_candidate_ns"]), float(clock["empty_denominator_ns"]))
