"""What a database says of who answered what: episodes, answers, final verdicts and declarations; no texts or times."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, func, select

from bench.judge.schemas import ADHOC, ANSWER_KINDS, End, Kind, Outcome, SetupRecord
from bench.results.models import Episode, Grade, Setup, table_of
from bench.results.queries import Assignment


class SeenEpisode(NamedTuple):
    """One episode, by its record or, where it left none (`end` is None), by its grades.

    `attempts` is its last attempt; `at` (UTC, ISO 8601) its start or, without a record, its first grade.
    """

    job_id: str
    label: str
    assignment: Assignment
    end: End | None
    end_code: int | None
    attempts: int
    at: str


class SeenGrade(NamedTuple):
    """One grade that may decide what a slot counts as; of kind `final` or `declared` it has no episode of its own."""

    grade_id: str
    job_id: str
    label: str | None
    assignment: Assignment
    attempt: int
    rank: int
    kind: Kind
    outcome: Outcome
    suspect: str | None
    reason: str | None
    of_grade_id: str | None
    task_hash: str | None
    requested_at: str


@dataclass(frozen=True)
class Seen:
    """What one database holds of some setups: their definitions there, episodes, and grades that decide."""

    setups: dict[str, SetupRecord]
    episodes: list[SeenEpisode]
    grades: list[SeenGrade]


# Previews decide nothing, and are most of the rows.
_DECIDING = (*ANSWER_KINDS, Kind.FINAL, Kind.DECLARED)
_GRADE = (
    *(Grade.grade_id, Grade.job_id, Grade.label, Grade.setup, Grade.kernel, Grade.slot, Grade.attempt, Grade.rank),
    *(Grade.kind, Grade.outcome, Grade.suspect, Grade.reason, Grade.of_grade_id, Grade.task_hash, Grade.requested_at),
)
_RECORDED = (
    *(Episode.job_id, Episode.label, Episode.setup, Episode.kernel, Episode.slot),
    *(Episode.end, Episode.end_code, Episode.attempts, Episode.started_at),
)


def seen(db: Connection, setups: Collection[str]) -> Seen:
    """All that decides what the slots of these setups count as. Ad hoc grades are left out: they answer nothing."""
    definitions = {row["setup"]: SetupRecord(**row) for row in db.execute(select(table_of(Setup))).mappings()}
    known = definitions.keys() & setups
    if not known:
        return Seen({}, [], [])
    wanted = select(*_GRADE).where(Grade.kind.in_(_DECIDING), Grade.setup.in_(known), Grade.job_id != ADHOC)
    grades = [
        SeenGrade(grade_id, job_id, label, Assignment(setup, kernel, slot), *found)
        for grade_id, job_id, label, setup, kernel, slot, *found in _rows(db, wanted)
    ]
    return Seen({name: definitions[name] for name in known}, list(_episodes(db, known)), grades)


def _episodes(db: Connection, setups: Collection[str]) -> Iterator[SeenEpisode]:
    """Recorded episodes, then those that are known by their grades alone: of the kernel of their first one."""
    recorded = set()
    wanted = select(*_RECORDED).where(Episode.end.is_not(None), Episode.setup.in_(setups))
    for job_id, label, *place, end, end_code, attempts, at in _rows(db, wanted):
        recorded.add((job_id, label))
        yield SeenEpisode(job_id, label, Assignment(*place), end, end_code, attempts or 1, at or "")
    first_at = func.min(Grade.requested_at)
    groups = (Grade.job_id, Grade.label, Grade.setup, Grade.kernel, Grade.slot, Grade.attempt)
    graded = (
        select(*groups, first_at)
        .where(Grade.setup.in_(setups), Grade.label.is_not(None), Grade.job_id != ADHOC)
        .where(Grade.kind.in_((Kind.SCORE, *ANSWER_KINDS)))
        .group_by(*groups)
        .order_by(first_at)
    )
    known: dict[tuple[str, str], SeenEpisode] = {}
    for job_id, label, *place, attempt, at in _rows(db, graded):
        episode = SeenEpisode(job_id, label, Assignment(*place), None, None, attempt, at)
        earlier = known.setdefault((job_id, label), episode)
        known[job_id, label] = earlier._replace(attempts=max(attempt, earlier.attempts))
    yield from (episode for key, episode in known.items() if key not in recorded)


def _rows(db: Connection, wanted: Select[*tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    for row in db.execute(wanted):
        yield tuple(row)
