"""The judge's fixed overhead: what a `/score` and a `/submit` cost beside compiling, running and checking."""

import json
import statistics
import time
from pathlib import Path
from typing import Any

from bench.measure.stopwatch import WORK_STAGES
from bench.results.database import engine
from bench.task import find_task
from tests.benchmarks.served import Served, judge

GOALS_MS = {"score": 60.0, "submit": 150.0}
CALLS = 15


def measure() -> list[dict[str, Any]]:
    """Median ms a call for `axpy` at S, over the wall time that a client sees."""
    source = find_task("axpy").baselines[0].read_text(encoding="utf-8")
    with judge() as served:
        found = {route: [_call(served, route, source) for _ in range(CALLS)] for route in GOALS_MS}
        (shard,) = served.folder.rglob("*.db")
        work = _work_ms(shard)
    return [_row(route, [wall - work[grade] for grade, wall in calls]) for route, calls in found.items()]


def _call(served: Served, route: str, source: str) -> tuple[str, float]:
    """The grade's id and the ms that the client waited for it."""
    start = time.perf_counter()
    grade_id = served.grade(route, "axpy", source)
    return grade_id, (time.perf_counter() - start) * 1e3


def _work_ms(shard: Path) -> dict[str, float]:
    """Grade → ms of compiler, kernel, oracle, values, comparison, flush and waiting, as its row tells."""
    with engine(shard, "ro").begin() as connection:
        rows = connection.exec_driver_sql("SELECT grade_id, stages FROM grades").all()
    return {grade: sum(ms for name, ms in json.loads(stages).items() if name in WORK_STAGES) for grade, stages in rows}


def _row(route: str, overheads_ms: list[float]) -> dict[str, Any]:
    return {
        "name": f"judge overhead, /{route}, axpy at S",
        "value": round(statistics.median(overheads_ms), 1),
        "unit": "ms",
        "goal": GOALS_MS[route],
        "min": min(overheads_ms),
        "max": max(overheads_ms),
        "n": len(overheads_ms),
    }


if __name__ == "__main__":
    print(json.dumps(measure()))
