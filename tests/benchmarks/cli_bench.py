"""How long the shell waits for `kcourt --help` and for a cold `kcourt grade axpy --preset S`."""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
KCOURT = Path(sys.executable).with_name("kcourt")


def seconds(argv: list[str], folder: str, runs: int) -> list[float]:
    """Wall times of a command as a shell sees them, one warm-up left out."""
    times = []
    for _ in range(runs + 1):
        start = time.perf_counter()
        subprocess.run(argv, cwd=folder, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return times[1:]


def result(name: str, times: list[float], goal: float) -> dict[str, Any]:
    median = statistics.median(times)
    return {
        **{"name": name, "value": median, "unit": "s", "goal": goal},
        **{"min": min(times), "max": max(times), "n": len(times)},
    }


def measure() -> list[dict[str, Any]]:
    source = str(ROOT / "tasks" / "dense" / "axpy" / "baseline.c")
    grade = ["grade", "axpy", source, "--preset", "S", "--allow-sandbox", "limits"]
    with tempfile.TemporaryDirectory() as folder:
        return [
            result("kcourt --help", seconds([str(KCOURT), "--help"], folder, 15), 0.3),
            result("kcourt grade axpy --preset S", seconds([str(KCOURT), *grade], folder, 7), 2.5),
        ]
