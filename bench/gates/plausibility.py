"""Flags a grade that is faster than this machine's measured bandwidth and peak allow: the physics floor."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from bench.court import Court
from bench.errors import EnvironmentFault
from bench.inputs import sizes_text
from bench.measure.calibration import Calibration, Ceilings, last
from bench.records import Cell
from bench.task import Sizes, Task

# The measured rates are the best of several tries, yet a lucky call may beat them by a little.
MARGIN = 1.25


@dataclass(frozen=True)
class Finding:
    """`suspect` is a reason to review the grade, or None; `note` says whether the floor was applied at all."""

    suspect: str | None
    note: str


@dataclass(frozen=True)
class Floor:
    """The least time of one call, in ns, and what sets it."""

    ns: float
    reason: str


def floor(task: Task, sizes: Sizes, ceilings: Ceilings) -> Floor:
    """The larger of traffic over bandwidth and operations over peak, each with the margin.

    `traffic` (bytes) and `flops` come from the manifest. Timed calls start with cold buffers, so whatever a level
    could hold has to come from memory first.
    """
    traffic, flops = float(task.manifest.traffic(sizes)), float(task.manifest.flops(sizes))
    bandwidth, peak = ceilings.memory.best * MARGIN, ceilings.flops * MARGIN
    by_traffic = Floor(traffic / bandwidth, f"{traffic:.3g} bytes at {bandwidth:.1f} GB/s")
    by_flops = Floor(flops / peak, f"{flops:.3g} operations at {peak:.1f} Gflop/s")
    return max(by_traffic, by_flops, key=lambda found: found.ns)


def check(task: Task, cells: Sequence[Cell], court: Court) -> Finding:
    """Hold the timed inputs of a solved grade against what this machine, or its GPU, can do. It never rejects."""
    if court.gpu:
        return against_copies(court.gpu.copy_rate(), task, cells)
    try:
        calibration = last()
    except EnvironmentFault as error:
        return Finding(None, f"not applied ({error})")
    return against(calibration, task, cells, len(court.cores.timing))


def against_copies(rate: float, task: Task, cells: Sequence[Cell]) -> Finding:
    """`check` against a GPU's memory, whose rate (bytes per ns) a large copy has measured; its caches were flushed."""
    for cell in cells:
        traffic = float(task.manifest.traffic(cell.sizes))
        found_ns, least_ns = median(cell.candidate_ns), traffic / (rate * MARGIN)
        if found_ns < least_ns:
            what = f"{traffic:.3g} bytes at {rate:.0f} GB/s"
            where = sizes_text(cell.sizes)
            suspect = f"{found_ns:.0f} ns at {where} is below the physics floor of {least_ns:.0f} ns ({what})"
            return Finding(suspect, f"applied (copies at {rate:.0f} GB/s): below the floor")
    return Finding(None, f"applied (copies at {rate:.0f} GB/s): above the floor on every input")


def against(calibration: Calibration | None, task: Task, cells: Sequence[Cell], cores: int) -> Finding:
    """`check` for a given calibration of a slot that times on `cores` cores."""
    if calibration is None:
        return Finding(None, "not applied (no calibration)")
    ceilings = calibration.ceilings
    if ceilings.cores < cores:
        return Finding(None, f"not applied (calibrated on {ceilings.cores} timing cores, this slot has {cores})")
    floors = [(cell, floor(task, cell.sizes, ceilings)) for cell in cells]
    # The baseline is trusted: where even it is faster than the floor, the calibration is wrong.
    if any(median(cell.denominator_ns) < least.ns for cell, least in floors):
        return Finding(None, f"not applied (the baseline itself beats the calibration of {calibration.made_at})")
    for cell, least in floors:
        if (found_ns := median(cell.candidate_ns)) < least.ns:
            where = sizes_text(cell.sizes)
            suspect = f"{found_ns:.0f} ns at {where} is below the physics floor of {least.ns:.0f} ns ({least.reason})"
            return Finding(suspect, f"applied (calibration of {calibration.made_at}): below the floor")
    return Finding(None, f"applied (calibration of {calibration.made_at}): above the floor on every input")
