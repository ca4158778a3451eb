"""What a job came to: every planned (setup, kernel, slot) as delivered, owed or under review, and why."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

from pydantic import BaseModel
from sqlalchemy import func, select

from bench.errors import ExitCode, KernelcourtError
from bench.judge.schemas import End, Outcome, Problem
from bench.reports.html import job_report
from bench.results import answers
from bench.results.models import Grade
from bench.results.queries import Assignment, Verdict, counts, docket, opened
from cluster.job.collect import collect
from cluster.job.documents import read_json, write_json, write_public
from cluster.job.endings import Cause, exit_code
from cluster.job.launched import launched, read_episode
from cluster.job.layout import RunLayout
from cluster.job.records import end_records
from cluster.study.problems import read_problems


class Standing(StrEnum):
    """What a planned item counts as; `unmerged`: its grades are safe but not in results.db yet."""

    DELIVERED = "delivered"
    OWED = "owed"
    REVIEW = "review"
    UNMERGED = "unmerged"


class OwedClass(StrEnum):
    """Who is to blame for an owed item, which decides the budget of its rerun."""

    BUDGET = "budget"
    INFRA = "infra"
    TASK = "task"


@dataclass(frozen=True)
class Item:
    """One planned (setup, kernel, slot) and what it counts as; `owed` and `why` unless delivered."""

    setup: str
    kernel: str
    slot: int
    standing: Standing
    outcome: Outcome | None = None
    end: End | None = None
    owed: OwedClass | None = None
    why: str | None = None


@dataclass(frozen=True)
class Ending:
    """How the job itself ended; `seconds` from its plan to its report.

    `degraded`: a rank, an engine or an agent node was lost, and others did the rest.
    """

    cause: Cause
    reason: str
    exit_code: ExitCode
    seconds: float
    degraded: bool = False


DIED = Ending(Cause.SERVICE_LOST, "the job died before its summary", ExitCode.SERVICE_LOST, 0.0)


@dataclass(frozen=True)
class Summary:
    """The content of `summary.json`."""

    job_id: str
    ending: Ending
    items: tuple[Item, ...]
    grades: dict[str, int]
    ranks: dict[str, int]
    steps: list[dict[str, object]]

    def count(self, standing: Standing) -> int:
        return sum(item.standing is standing for item in self.items)

    def document(self) -> dict[str, Any]:
        """The summary as JSON-able values."""
        setups = list(dict.fromkeys(item.setup for item in self.items))
        return {
            "job_id": self.job_id,
            "exit_code": int(self.ending.exit_code),
            "exit": self.ending.exit_code.name.lower(),
            "cause": self.ending.cause,
            "reason": self.ending.reason,
            "seconds": self.ending.seconds,
            "degraded": self.ending.degraded,
            "planned": len(self.items),
            **{standing.value: self.count(standing) for standing in Standing},
            "setups": {setup: _tally([item for item in self.items if item.setup == setup]) for setup in setups},
            "grades": self.grades,
            "ranks": self.ranks,
            "steps": self.steps,
            "items": [asdict(item) for item in self.items],
        }


def _tally(items: Sequence[Item]) -> dict[str, Any]:
    """Counts of one setup: its standings, outcomes and owed classes."""
    return {
        "planned": len(items),
        **{standing.value: sum(item.standing is standing for item in items) for standing in Standing},
        "outcomes": dict(Counter(item.outcome for item in items if item.outcome)),
        "owed_by_class": dict(Counter(item.owed for item in items if item.owed)),
    }


def account(problem: Problem, verdict: Verdict | None, end: End | None, review: Verdict | None = None) -> Item:
    """What a planned problem counts as: by its answer, its suspect one before all, and by the end of its episode."""

    def item(standing: Standing, owed: OwedClass | None = None, why: str | None = None) -> Item:
        found = review or verdict
        outcome = found.outcome if found else None
        return Item(problem.setup, problem.kernel, problem.slot, standing, outcome, end, owed, why)

    if review:
        return item(Standing.REVIEW, why=review.suspect)
    if verdict is None:
        blame = OwedClass.BUDGET if end in BUDGET_ENDS else OwedClass.INFRA
        ended = f"the episode ended by '{end}' without a submit" if end else "no record of an episode"
        return item(Standing.OWED, blame, _NOT_COUNTED if end is End.SUBMITTED else ended)
    return item(Standing.DELIVERED)


_NOT_COUNTED = "the episode submitted, but none of its submits in results.db counts"
BUDGET_ENDS = frozenset({End.TIME, End.TOKENS, End.CONTEXT})


@dataclass(frozen=True)
class Found:
    """What results.db says of the job; empty where there was no merge."""

    verdicts: tuple[Verdict, ...] = ()
    reviews: tuple[Verdict, ...] = ()
    grades: dict[str, int] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)


def conclude(layout: RunLayout, ending: Ending) -> Summary:
    """Account for every planned problem, and write `summary.json` and, after a merge, `report.html`.

    Raises:
        ConfigError: the run's plan or problems are damaged.
    """
    merged = layout.results.exists() and not layout.merge_failed.exists()
    found = _read_results(layout) if merged else Found()
    items = _items(layout, found)
    summary = Summary(launched(layout).job_id, ending, items, found.grades, found.ranks, end_records(layout.steps))
    write_json(layout.summary, summary.document())
    if merged:
        write_public(layout.report, job_report(layout.results, summary.document()))
    return summary


def _read_results(layout: RunLayout) -> Found:
    with opened([layout.results]) as database:
        of_all = docket(database)
        by_rank = database.execute(select(Grade.rank, func.count()).group_by(Grade.rank))
        return Found(
            tuple(answers.verdicts(of_all)),
            tuple(answers.reviews(of_all)),
            {kind.value: number for kind, number in counts(database).by_kind.items()},
            {str(rank): number for rank, number in by_rank},
        )


def _items(layout: RunLayout, found: Found) -> tuple[Item, ...]:
    problems = read_problems(layout.problems)
    if layout.merge_failed.exists():
        return tuple(Item(p.setup, p.kernel, p.slot, Standing.UNMERGED, why="the merge failed") for p in problems)
    answered, suspect = ({one.assignment: one for one in some} for some in (found.verdicts, found.reviews))
    records = [read_episode(path) for path in layout.episode_records()]
    ends = {Assignment(record.setup, record.kernel, record.slot): record.end for record in records}
    keys = [(problem, Assignment(problem.setup, problem.kernel, problem.slot)) for problem in problems]
    return tuple(account(problem, answered.get(key), ends.get(key), suspect.get(key)) for problem, key in keys)


def recollect(layout: RunLayout) -> Summary:
    """Merge a run again and account for it; a merge that fails is in `summary.json` too.

    Raises:
        ConfigError: the folder holds no run, or its plan, problems or summary are damaged.
        ShardError, JudgeFault: as `collect` does.
    """
    launched(layout)
    before = read_summary(layout)
    ending = before.ending_without_merge if before else DIED
    try:
        collect(layout)
    except KernelcourtError:
        conclude(layout, replace(ending, exit_code=ExitCode.MERGE_FAILED))
        raise
    return conclude(layout, ending)


class SummaryFile(BaseModel):
    """What is read again of a `summary.json`."""

    cause: Cause
    reason: str
    seconds: float
    exit_code: ExitCode
    degraded: bool = False
    items: tuple[Item, ...]

    @property
    def ending(self) -> Ending:
        return Ending(self.cause, self.reason, self.exit_code, self.seconds, self.degraded)

    @property
    def ending_without_merge(self) -> Ending:
        """How the job ended, or would have if its merge had worked."""
        if self.exit_code is not ExitCode.MERGE_FAILED:
            return self.ending
        return replace(self.ending, exit_code=exit_code(self.cause, self.degraded))


def read_summary(layout: RunLayout) -> SummaryFile | None:
    """A job's summary; None before there is one. Raises ConfigError where it is damaged."""
    cure = f"move it away, and `kcourt job collect {layout.root}` writes a new one"
    return read_json(SummaryFile, layout.summary, cure)


def exit_of(layout: RunLayout) -> ExitCode:
    """How a job ended, by its summary; a job that left none was lost. Raises ConfigError where it is damaged."""
    summary = read_summary(layout)
    return (summary.ending if summary else DIED).exit_code
