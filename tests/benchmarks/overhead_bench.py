"""The judge's fixed overhead: what a `/score` and a `/submit` cost beside compiling, running and checking."""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
from ports import free_port

from bench.measure.stopwatch import WORK_STAGES
from bench.results.database import engine
from bench.task import find_task

GOALS_MS = {"score": 60.0, "submit": 150.0}
CALLS = 15


def measure() -> list[dict[str, Any]]:
    """Median ms a call for `axpy` at S, over the wall time that a client sees."""
    source = find_task("axpy").baselines[0].read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        argv = [str(Path(sys.executable).with_name("kcourt")), "serve", "--port", str(port)]
        argv += ["--allow-sandbox", "limits", "--preset", "S"]
        judge = subprocess.Popen(argv, cwd=folder, stdout=subprocess.DEVNULL)
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
                _await_healthy(client)
                found = {route: [_call(client, route, source) for _ in range(CALLS)] for route in GOALS_MS}
        finally:
            judge.terminate()
            judge.wait()
        (shard,) = Path(folder).rglob("*.db")
        work = _work_ms(shard)
    return [_row(route, [wall - work[grade] for grade, wall in calls]) for route, calls in found.items()]


def _await_healthy(client: httpx.Client) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            if client.get("/health").json().get("status") == "ok":
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise TimeoutError("the judge did not become healthy within 60 s")


def _call(client: httpx.Client, route: str, source: str) -> tuple[str, float]:
    """The grade's id and the ms that the client waited for it."""
    start = time.perf_counter()
    answer = client.post(f"/{route}", json={"kernel": "axpy", "language": "c", "source": source})
    elapsed_ms = (time.perf_counter() - start) * 1e3
    answer.raise_for_status()
    return answer.json()["grade_id"], elapsed_ms


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
