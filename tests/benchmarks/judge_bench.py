"""What a judge keeps of the grades it has made: memory and open files of its processes, which must stay flat."""

import json
from typing import Any

import psutil

from bench.task import find_task
from tests.benchmarks.served import Served, judge

GRADES, FIRST = 500, 100
MB = 1e6
KERNEL = "axpy"


def measure(grades: int = GRADES, first: int = FIRST) -> list[dict[str, Any]]:
    """Growth from the `first` grades to all of them: memory in MB, counted once where shared, and open files."""
    source = find_task(KERNEL).baselines[0].read_text(encoding="utf-8")
    with judge() as served:
        _grade(served, source, range(first))
        memory, files = _held(served.pid)
        _grade(served, source, range(first, grades))
        memory_then, files_then = _held(served.pid)
    what = f"of a judge from {first} to {grades} grades"
    return [
        {"name": f"memory {what}, growth", "value": (memory_then - memory) / MB, "unit": "MB", "goal": 10, "n": grades},
        {"name": f"memory {what}, in all", "value": memory_then / MB, "unit": "MB", "n": grades},
        {"name": f"open files {what}, growth", "value": files_then - files, "unit": "files", "goal": 0, "n": grades},
    ]


def _grade(served: Served, source: str, numbers: range) -> None:
    """Grade as many sources, no two the same; two of five are wrong in one way or another."""
    spoiled = {0: "int kernel_missing;\n", 1: source.replace("a * x", "a + x", 1)}
    for number in numbers:
        served.grade("score", KERNEL, f"{spoiled.get(number % 5, source)}/* {number} */\n")


def _held(pid: int) -> tuple[int, int]:
    """Bytes and open files of a process and all below it."""
    family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    return sum(one.memory_full_info().pss for one in family), sum(one.num_fds() for one in family)


if __name__ == "__main__":
    print(json.dumps(measure()))
