"""What grades are worth and what they cost: builds, A/A, known ratios, stages, grades an hour, the best known times."""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

from bench.errors import KernelcourtError
from bench.inputs import Case
from bench.judge.schemas import Language, Preset
from bench.measure.protocols import find_protocol
from bench.measure.statistics import chance_credit
from bench.records import GradeReport, WarmOrder
from bench.reference import Twin
from bench.sandbox import scratch_folder
from bench.task import Task
from bench.verdict import Rejected
from bench.warm import warm

from . import spinning
from .figures import Line, missing, most_by_chance, percent_off, quantile, single, spread, why
from .slot import Slot, built, calm, running, solved, sources, timed_calls

FINAL, AGAINST_ITSELF = "mw4x5", "mw4x5-aa"
OVERHEAD_MS, SPREAD_PERCENT, LADDER_PERCENT = 400, 5.0, 3.0
BUILDERS = 12


def builds(slot: Slot) -> Iterator[Line]:
    """Build ahead what all other parts share: each kernel's baseline, twin, shim and honest controls."""
    tasks, begun = slot.tasks, time.monotonic()
    workers = min(BUILDERS, len(slot.court.cores.others)) if slot.court.cores.spare else 1
    with ThreadPoolExecutor(workers) as pool:
        found = list(pool.map(lambda task: build_all(slot, task), tasks))
    seconds = [result for result in found if isinstance(result, float)]
    yield from ({"missing": result} for result in found if isinstance(result, str))
    if seconds:
        note = f"baseline, twin, shim and controls; {workers} kernels at once"
        yield spread("building what a kernel needs", seconds, "s", note=note)
    yield single("building ahead, all kernels together", time.monotonic() - begun, "s", n=len(seconds))


def build_all(slot: Slot, task: Task) -> float | str:
    """Seconds that a kernel's builds took, or why they are not there."""
    begun = time.monotonic()
    if slot.deadline.left_s <= 0:
        return f"{task.name}: not built ahead, for lack of time"
    try:
        warm(WarmOrder(kernel=task.name, languages=(Language.HIP,)), slot.court)
        for path in sources(task):
            built(slot.court, task, path)
    except KernelcourtError as error:
        return f"{task.name}: {why(error)}"
    return time.monotonic() - begun


# What a grade is worth


def against_itself(slot: Slot) -> Iterator[Line]:
    """Baselines graded against themselves, over the kernels in turn: every credit is noise."""
    tasks, preset, reports = slot.tasks, slot.extent.middle, []
    for turn in slot.deadline.turns(slot.extent.own_grades, "A/A grades"):
        task = tasks[turn % len(tasks)]
        try:
            report = solved(slot, task, task.baselines[0], preset, AGAINST_ITSELF)
        except KernelcourtError as error:
            yield missing(f"A/A of {task.name}", error)
            continue
        reports.append(report)
        yield {"each": {"kernel": task.name, **brief(report)}}
    if reports:
        yield from own_figures(reports, preset)


def brief(report: GradeReport) -> dict[str, Any]:
    """A grade in a few numbers, times in ms."""
    return {
        "score": report.score,
        "interval": report.interval,
        "credited": sum(cell.credited for cell in report.cells),
        "median_ms": [median(cell.denominator_ns) / 1e6 for cell in report.cells],
        "overhead_ms": report.overhead_ms,
        "suspect": report.suspect,
    }


def own_figures(reports: Sequence[GradeReport], preset: Preset) -> Iterator[Line]:
    stamp, cells = find_protocol(AGAINST_ITSELF), [cell for report in reports for cell in report.cells]
    expected, hits = chance_credit(stamp.runs, stamp.alpha), sum(cell.credited for cell in cells)
    goal = 100 * most_by_chance(len(cells), expected) / len(cells)
    note = f"{hits} of {len(cells)}; chance alone gives {100 * expected:.1f} %, and the goal in 95 of 100 such runs"
    yield single(f"A/A at {preset}: inputs credited", 100 * hits / len(cells), "%", goal, note, len(cells))
    off = [percent_off(report.score, 1) for report in reports if report.score is not None]
    yield single(f"A/A at {preset}: |S - 1|, p95", quantile(off, 0.95), "%", SPREAD_PERCENT, n=len(off))
    hold = sum(low <= 1 <= high for low, high in (report.interval for report in reports if report.interval))
    yield single(f"A/A at {preset}: 90 % intervals that hold 1", 100 * hold / len(reports), "%", n=len(reports))
    order = [
        (c / d if who == "c" else d / c)
        for cell in cells
        for who, c, d in zip(cell.order, cell.candidate_ns, cell.denominator_ns, strict=True)
    ]
    yield spread(f"A/A at {preset}: first of a pair over second", order, "")


def ladder(slot: Slot) -> Iterator[Line]:
    """Kernels whose true ratio is known by the amount of work."""
    preset, rungs = slot.extent.large, slot.extent.rungs
    found: dict[int, list[GradeReport]] = {units: [] for units in rungs}
    with scratch_folder() as folder:
        written = {units: spinning.write(folder / str(units), units) for units in rungs}
        for turn in slot.deadline.turns(len(rungs) * slot.extent.rung_grades, "grades of known ratios"):
            units = rungs[turn % len(rungs)]
            try:
                found[units].append(solved(slot, *written[units], preset, FINAL))
            except KernelcourtError as error:
                yield missing(f"known ratio {units / spinning.CANDIDATE_UNITS:g}", error)
    for units, reports in found.items():
        if reports:
            yield from rung_figures(units / spinning.CANDIDATE_UNITS, reports, preset)


def rung_figures(truth: float, reports: Sequence[GradeReport], preset: Preset) -> Iterator[Line]:
    raws = [report.raw_ratio for report in reports if report.raw_ratio is not None]
    held = sum(low <= truth <= high for low, high in (report.interval for report in reports if report.interval))
    note = f"{held} of {len(raws)} intervals hold it"
    yield spread(f"known ratio {truth:g} at {preset}: found", raws, "", note=note)
    off = percent_off(median(raws), truth)
    yield single(f"known ratio {truth:g} at {preset}: median off by", off, "%", LADDER_PERCENT, n=len(raws))


# What a grade costs


def grade_cost(slot: Slot) -> Iterator[Line]:
    """Stages of a grade, and grades an hour over all kernels."""
    for task in (task for task in slot.tasks if task.name in slot.extent.staged):
        try:
            yield from stages(slot, task)
        except KernelcourtError as error:
            yield missing(f"stages of {task.name}", error)
    for preset in dict.fromkeys((slot.extent.large, slot.extent.middle)):
        yield from hourly(slot, preset)


def stages(slot: Slot, task: Task) -> Iterator[Line]:
    """The judge's overhead, and where the rest of a grade's time goes."""
    preset = slot.extent.large
    turns = slot.deadline.turns(slot.extent.stage_grades, f"grades of {task.name}")
    reports = [solved(slot, task, task.baselines[0], preset, FINAL) for _ in turns]
    names = dict.fromkeys(name for report in reports for name in report.stages_ms)
    spent = {name: median(report.stages_ms.get(name, 0.0) for report in reports) for name in names}
    overheads = [report.overhead_ms for report in reports]
    yield spread(f"overhead of a grade of {task.name} at {preset}", overheads, "ms", OVERHEAD_MS, stages_ms=spent)


def hourly(slot: Slot, preset: Preset) -> Iterator[Line]:
    """One grade of each kernel's baseline."""
    tasks, seconds = slot.tasks, []
    for turn in slot.deadline.turns(len(tasks), f"grades at {preset}"):
        task, begun = tasks[turn], time.monotonic()
        try:
            report = solved(slot, task, task.baselines[0], preset, FINAL)
        except KernelcourtError as error:
            yield missing(f"grade of {task.name} at {preset}", error)
            continue
        seconds.append(time.monotonic() - begun)
        row = {"kernel": task.name, "preset": preset, "seconds": round(seconds[-1], 3), **brief(report)}
        yield {"each": row | {"stages_ms": report.stages_ms}}
    if seconds:
        note = f"{len(seconds)} of {len(tasks)} kernels, one grade of each baseline, one slot"
        yield single(f"grades at {preset}", 3600 * len(seconds) / sum(seconds), "an hour", note=note, n=len(seconds))
        yield spread(f"a grade at {preset}", seconds, "s")


# The best known times


def roofline(slot: Slot) -> Iterator[Line]:
    """The fastest of each kernel's own HIP sources, against a copy's bandwidth and in operations per ns."""
    rate, preset = slot.gpu.copy_rate(), slot.extent.large
    for turn in slot.deadline.turns(len(slot.tasks), "kernels"):
        task, times = slot.tasks[turn], {}
        sizes = task.size(preset)
        for path in sources(task):
            try:
                times[path.name] = call_ns(slot, task, path, preset)
            except (KernelcourtError, Rejected) as error:
                yield missing(f"{task.name}, {path.name} at {preset}", error)
        if times:
            best = min(times, key=times.__getitem__)
            traffic, flops = float(task.manifest.traffic(sizes)), float(task.manifest.flops(sizes))
            note = f"{best}: {times[best] / 1e3:.4g} us, {flops / times[best]:.4g} Gflop/s"
            share = 100 * traffic / times[best] / rate
            yield single(f"{task.name} at {preset}: share of the copy's bandwidth", share, "%", note=note)
            yield {"each": {"kernel": task.name, "preset": preset, "traffic": traffic, "flops": flops, "ns": times}}


def call_ns(slot: Slot, task: Task, path: Path, preset: Preset) -> float:
    """Median time of a few checked calls of one of a kernel's own sources.

    Raises:
        JudgeFault: it does not build or load.
        Rejected: it answered wrongly, or failed.
    """
    sizes = task.size(preset)
    with running(slot.court, task, [sizes], path) as (session, runner):
        twin = Twin(slot.court.sandbox, task, slot.court.memory, slot.court.kit)
        prepared = session.prepare(Case("roofline", path.name, sizes), twin.oracle)
        return median(call.elapsed_ns for call in calm(timed_calls(session, runner, prepared, slot.extent.few_calls)))
