"""A measuring process that measures nothing: same protocol, told what to find by a comment in the source.

`// fake: <outcome>`, `die`, `fault`, `fault-once <file>`, `wait <file>`, `nan`, `lacking`; any other source is solved.
A kernel to warm is done at once, or when the file of that name is there; `broken` cannot be warmed.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

from bench import process
from bench.judge.schemas import Counters, Outcome, Preset
from bench.records import Cell, GradeOrder, GradeReport, ProfileOrder, ProfileReport, SourceFile
from bench.seeds import commitment


def report(order: GradeOrder, word: str) -> GradeReport:
    """A report as a real grade leaves one."""
    outcome = Outcome(word) if word in set(Outcome) else Outcome.SOLVED
    solved = outcome is Outcome.SOLVED
    times = (1000, 1100, 1050, 1010, 1020)
    cell = Cell(
        index=0,
        sizes={"n": 1000},
        ratio=2.0,
        raw=2.0,
        p=0.004,
        credited=True,
        candidate_ns=times,
        denominator_ns=tuple(2 * time_ns for time_ns in times),
        order="cdcdc",
    )
    number = float("nan") if word == "nan" else 1.5
    found = {"output": "out", "index": [3], "got": number, "expected": float("inf"), "bound": 1e-6}
    return GradeReport(
        grade_id=order.grade_id,
        outcome=outcome,
        property=None if solved else "values",
        detail=found if (order.disclose and not solved) or word == "nan" else {},
        log="a log that names hidden inputs",
        score=2.0 if solved else None,
        raw_ratio=2.0 if solved else None,
        interval=(1.9, 2.1) if solved else None,
        faster=True if solved else None,
        protocol=order.protocol,
        preset=order.preset,
        cells=(cell,) if solved else (),
        denominator="baseline.c" if solved else None,
        task_hash="0" * 64,
        seed_commitment=commitment(bytes.fromhex(order.seed)),
        sandbox="limits",
        sources=(
            SourceFile(
                role="submission",
                name=f"{order.kernel}{order.language.suffix}",
                content=(order.source or "").encode(),
            ),
        ),
    )


def profiled(order: ProfileOrder, word: str) -> ProfileReport:
    """A profile of nothing."""
    outcome = Outcome(word) if word in set(Outcome) else Outcome.SOLVED
    if outcome is not Outcome.SOLVED:
        return ProfileReport(tool=order.tool, outcome=outcome, property="build", log="a log")
    counters = Counters(unit="samples", total=0, calls=1, preset=Preset.M, sizes={"n": 1}, functions=(), lines=())
    return ProfileReport(tool=order.tool, outcome=outcome, report=f"seed {order.seed}", counters=counters)


def _wait_for(path: Path) -> None:
    """Hold a grade until the test makes this file."""
    Path(f"{path}.reached").touch()
    while not path.exists():
        time.sleep(0.005)


def _say(message: dict[str, Any]) -> None:
    print(json.dumps(message), flush=True)


def main() -> int:
    process.die_with_parent()
    unfit = Path(sys.argv[1]) / "unfit"
    if unfit.exists():
        _say({"unfit": unfit.read_text()})
        return 1
    _say({"ready": {"sandbox": "limits", "device": "cpu", "cores": {"timing": [0], "clock": 1}}})
    for line in sys.stdin:
        asked = json.loads(line)
        if "warm" in asked:
            kernel = asked["warm"]["kernel"]
            if kernel.startswith("/"):
                _wait_for(Path(kernel))
            _say({"fault": "no compiler"} if kernel == "broken" else {"warmed": kernel})
            continue
        order: Any = (GradeOrder if "order" in asked else ProfileOrder).model_validate(*asked.values())
        _, _, word = (order.source or "").partition("// fake: ")
        match word.split():
            case ["die"]:
                return 9
            case ["fault"]:
                _say({"fault": "no compiler"})
                continue
            case ["fault-once", path] if not Path(path).exists():
                Path(path).touch()
                _say({"fault": "no compiler"})
                continue
            case ["wait", path]:
                _wait_for(Path(path))
            case ["lacking"]:
                _say({"lacking": {"why": "perf was not found"}})
                continue
        if isinstance(order, ProfileOrder):
            _say({"profiled": profiled(order, word.strip()).model_dump(mode="json")})
            continue
        _say({"report": report(order, word.strip()).model_dump(mode="json")})
    return 0


if __name__ == "__main__":
    sys.exit(main())
