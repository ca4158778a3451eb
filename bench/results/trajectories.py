"""How episodes came to their answers: each request with the tokens spent until then; speedup against tokens."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, select

from bench.judge.schemas import ANSWER_KINDS, Kind, Outcome
from bench.results.models import Episode, Grade, Ruling
from bench.results.queries import OWN_KERNEL, Assignment
from bench.results.rulings import standing

_KINDS = (Kind.SCORE, *sorted(ANSWER_KINDS))


@dataclass(frozen=True)
class Point:
    """One request of an episode; `tokens` is what the episode had used when it was sent, None where nobody counted.

    `best` is the best score of the episode so far; a grade that is disqualified, or suspect and not accepted, has none
    to give.
    """

    grade_id: str
    attempt: int
    requested_at: str
    tokens: int | None
    kind: Kind
    outcome: Outcome
    raw_ratio: float | None
    score: float | None
    suspect: str | None
    best: float | None


@dataclass(frozen=True)
class Trajectory:
    """An episode's requests in their order; `tokens` and `dollars` are those of its whole record."""

    job_id: str
    label: str
    assignment: Assignment
    tokens: int | None
    dollars: float | None
    points: tuple[Point, ...]


def trajectories(db: Connection) -> list[Trajectory]:
    """Every episode that has a grade, by setup, kernel, slot, job and label. What audits asked is not its own."""
    wanted = (
        select(Grade, Episode.tokens_fresh, Episode.tokens_cached, Episode.tokens_output, Episode.dollars)
        .outerjoin(Episode, (Episode.job_id == Grade.job_id) & (Episode.label == Grade.label))
        .where(Grade.label.is_not(None), Grade.kind.in_(_KINDS), OWN_KERNEL)
        .order_by(Grade.setup, Grade.kernel, Grade.slot, Grade.job_id, Grade.label, Grade.requested_at, Grade.grade_id)
    )
    ruled = standing(db)
    found = groupby(db.execute(wanted), key=lambda row: (row.job_id, row.label))
    return [_trajectory([*rows], ruled) for _, rows in found]


def _trajectory(rows: Sequence[Any], ruled: Mapping[str, Ruling]) -> Trajectory:
    first = rows[0]
    kinds = [first.tokens_fresh, first.tokens_cached, first.tokens_output]
    reported = [tokens for tokens in kinds if tokens is not None]
    return Trajectory(
        job_id=first.job_id,
        label=first.label,
        assignment=Assignment(first.setup, first.kernel, first.slot),
        tokens=sum(reported) if reported else None,
        dollars=first.dollars,
        points=tuple(_points(rows, ruled)),
    )


def _points(rows: Sequence[Any], ruled: Mapping[str, Ruling]) -> Iterator[Point]:
    best: float | None = None
    for row in rows:
        valid = ruled.get(row.grade_id) is (Ruling.ACCEPTED if row.suspect else None)
        if valid and row.outcome is Outcome.SOLVED and row.score is not None:
            best = max(best or 0.0, row.score)
        yield Point(
            grade_id=row.grade_id,
            attempt=row.attempt,
            requested_at=row.requested_at,
            tokens=row.tokens_spent,
            kind=row.kind,
            outcome=row.outcome,
            raw_ratio=row.raw_ratio,
            score=row.score,
            suspect=row.suspect,
            best=best,
        )
