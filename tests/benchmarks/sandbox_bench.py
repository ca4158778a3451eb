"""What each sandbox level costs by each means: a start of `true`, and the stage `start` of a small grade."""

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from bench import seeds
from bench.court import Court, open_court
from bench.grade import grade
from bench.judge.schemas import Kind, Language, Outcome, Preset
from bench.process import Limits
from bench.records import GradeOrder
from bench.sandbox import Level, Means, Sandbox, scratch_folder, why_not
from bench.task import find_task

STARTS, GRADES = 30, 15
GOAL_MS = 40.0


def measure() -> list[dict[str, Any]]:
    """Median ms of each level and means; the goal is that of a whole grade."""
    court = open_court("limits")
    courts = [replace(court, sandbox=way) for way in ways(court.sandbox)]
    starts = in_turns(courts, STARTS, start_ms)
    stages = in_turns(courts, GRADES, stage_ms)
    return [
        *(row(f"start of true, {way}", found) for way, found in starts.items()),
        *(row(f"start stage of a grade, {way}", found) | {"goal": GOAL_MS} for way, found in stages.items()),
    ]


def in_turns(courts: list[Court], turns: int, one_ms: Callable[[Court], float]) -> dict[str, list[float]]:
    """Ms of each court's turns, so that a busy moment meets all of them."""
    found = [(name(court), one_ms(court)) for _ in range(turns) for court in courts]
    return {name(court): [ms for whose, ms in found if whose == name(court)] for court in courts}


def ways(sandbox: Sandbox) -> Iterator[Sandbox]:
    """Every level and means that this machine reaches, `limits` first."""
    yield replace(sandbox, level=Level.LIMITS)
    for level in (Level.USER, Level.FULL):
        if level <= sandbox.level:
            yield from (replace(sandbox, level=level, means=means) for means in Means if not why_not(level, means))


def name(court: Court) -> str:
    return f"{court.sandbox.level} by {court.sandbox.by}"


def start_ms(court: Court) -> float:
    with scratch_folder() as folder:
        begin = time.perf_counter()
        court.sandbox.run(["true"], Limits(wall_s=10), folder)
        return (time.perf_counter() - begin) * 1e3


def stage_ms(court: Court) -> float:
    """Ms of the stage `start` (both sides' processes) of one preview of axpy's baseline at S."""
    order = GradeOrder(
        grade_id="bench",
        kind=Kind.CALIBRATION,
        kernel="axpy",
        language=Language.C,
        source=find_task("axpy").baselines[0].read_text(encoding="utf-8"),
        preset=Preset.S,
        protocol="mw2x5",
        seed=seeds.new_root().hex(),
    )
    report = grade(order, court)
    assert report.outcome is Outcome.SOLVED, report.detail
    return report.stages_ms["start"]


def row(what: str, found_ms: list[float]) -> dict[str, Any]:
    median = round(statistics.median(found_ms), 1)
    return {"name": what, "value": median, "unit": "ms", "min": min(found_ms), "max": max(found_ms), "n": len(found_ms)}
