"""Grades an hour: five kernels that differ, at XL under the final protocol, and where the time of a grade goes."""

import json
import statistics
import time
from collections.abc import Sequence
from typing import Any

from bench import process
from bench.calibrate import solved
from bench.court import Court, open_court
from bench.judge.schemas import Preset
from bench.task import Task, find_task
from bench.worker import order_of

KERNELS = ("axpy", "sgemm", "jacobi2d", "spmv_csr", "softmax_rows")
PROTOCOL, GRADES = "mw4x5", 2


def measure(kernels: Sequence[str] = KERNELS, preset: Preset = Preset.XL, grades: int = GRADES) -> list[dict[str, Any]]:
    """Each kernel's own baseline graded as `/submit` would; a first grade at S, which fills the caches, left out."""
    court = open_court("limits")
    process.adopt_orphans()
    return [_of_kernel(find_task(name), preset, grades, court) for name in kernels]


def _of_kernel(task: Task, preset: Preset, grades: int, court: Court) -> dict[str, Any]:
    solved(order_of(task, task.baselines[0]), court, task)
    made = [_grade(task, preset, court) for _ in range(grades)]
    seconds = [elapsed_s for elapsed_s, _ in made]
    return {
        "name": f"grades of {task.name} at {preset} ({PROTOCOL})",
        "value": 3600 / statistics.median(seconds),
        "unit": "an hour",
        "min": 3600 / max(seconds),
        "max": 3600 / min(seconds),
        "n": grades,
        "grade_s": statistics.median(seconds),
        "stages_ms": {stage: statistics.median(stages[stage] for _, stages in made) for stage in made[0][1]},
    }


def _grade(task: Task, preset: Preset, court: Court) -> tuple[float, dict[str, float]]:
    """Seconds of one grade, and its ms by stage."""
    start = time.perf_counter()
    report = solved(order_of(task, task.baselines[0], preset, PROTOCOL), court, task)
    return time.perf_counter() - start, report.stages_ms


if __name__ == "__main__":
    print(json.dumps(measure()))
