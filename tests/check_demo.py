"""Says whether a demo's results.db shows what it promises; `python -m tests.check_demo [RUN]` after `make demo`."""

import sys
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Connection, select

from bench.judge.schemas import Outcome
from bench.places import run_root
from bench.results.models import Grade
from bench.results.queries import Verdict, opened, verdicts
from bench.task import select as select_kernels
from cluster.job.layout import RunLayout

GOLD_FASTER_AT_LEAST = 8
NOOP_FASTER_AT_MOST = 3
STUMBLES = 3


def broken_promises(database: Connection) -> list[str]:
    """What the demo promises and this database does not hold, one sentence each."""
    found = list(verdicts(database))
    return [*_gold(found), *_noop(found), *_stumbler(database)]


def _of(found: list[Verdict], setup: str) -> dict[str, Verdict]:
    return {one.assignment.kernel: one for one in found if one.assignment.setup == setup}


def _gold(found: list[Verdict]) -> Iterator[str]:
    gold, kernels = _of(found, "gold"), {task.name for task in select_kernels("demo")}
    if unsolved := sorted(kernels - {name for name, one in gold.items() if one.solved}):
        yield f"gold did not solve {', '.join(unsolved)}"
    faster = [name for name, one in gold.items() if one.faster]
    if len(faster) < GOLD_FASTER_AT_LEAST:
        yield f"gold is faster on {len(faster)} kernels, {GOLD_FASTER_AT_LEAST} are promised: {', '.join(faster)}"


def _noop(found: list[Verdict]) -> Iterator[str]:
    faster = [name for name, one in _of(found, "noop").items() if one.faster]
    if len(faster) > NOOP_FASTER_AT_MOST:
        yield f"noop is faster on {len(faster)} kernels, at most {NOOP_FASTER_AT_MOST} by chance: {', '.join(faster)}"


def _stumbler(database: Connection) -> Iterator[str]:
    """Its right answer is its last grade, and nothing before it is solved."""
    wanted = select(Grade.kernel, Grade.outcome).where(Grade.setup == "stumbler").order_by(Grade.requested_at)
    course: dict[str, list[Outcome]] = {}
    for kernel, outcome in database.execute(wanted):
        course.setdefault(kernel, []).append(outcome)
    if len(course) != STUMBLES:
        yield f"stumbler worked on {len(course)} kernels, {STUMBLES} are promised"
    for kernel, outcomes in course.items():
        if Outcome.SOLVED in outcomes[:-1]:
            yield f"stumbler solved {kernel} before its right answer: {', '.join(outcomes)}"
        if outcomes[-1] is not Outcome.SOLVED:
            yield f"stumbler's last grade of {kernel} is {outcomes[-1]}"


def newest_run(root: Path) -> Path:
    """The last local job; its id holds the time."""
    return max(root.glob("local-*"), default=root / "local-none")


def main(arguments: list[str]) -> int:
    run = Path(arguments[0]) if arguments else newest_run(run_root())
    with opened([RunLayout(run).results]) as database:
        broken = broken_promises(database)
    for promise in broken or [f"{run}: the demo shows what it promises"]:
        print(promise)
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
