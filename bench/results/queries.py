"""What the databases say: counts, the answer that counts for each (setup, kernel, slot), the final table."""

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Integer, Select, cast, func, select

from bench.errors import ShardError
from bench.judge.schemas import ADHOC, ANSWER_KINDS, End, Kind, Outcome
from bench.measure.protocols import PROTOCOLS, ProtocolRole
from bench.results import answers
from bench.results.answers import Assignment as Assignment
from bench.results.answers import Verdict as Verdict
from bench.results.database import connected, identify
from bench.results.models import Base, Disqualification, Episode, Grade, Ruling, Setup, create_indexes, create_schema
from bench.results.rulings import standing
from bench.results.union import attached, take

# Columns that no query here looks at: several databases are read as one in memory, and these are most of it.
HEAVY = {"answer": "", "provenance": "", "stages": ""}


@dataclass(frozen=True)
class Counts:
    """How much there is; `unrecorded_episodes` are known by grades alone, as all of a live shard are."""

    setups: int
    episodes: int
    unrecorded_episodes: int
    grades: int
    by_kind: dict[Kind, int]
    by_outcome: dict[Outcome, int]


@dataclass(frozen=True)
class SetupCounts:
    """One setup: its episodes and grades, and how its verdicts fell; `suspect` are those that nobody has ruled on."""

    setup: str
    episodes: int
    grades: int
    verdicts: int
    solved: int
    faster: int
    suspect: int
    judge_faults: int


@dataclass(frozen=True)
class TableRow:
    """One line of the final table. Without an answer `verdict` is None and `end` says how the episode went.

    `grades` counts every grade, previews too; `seconds` is the last episode's wall time. `review` is a suspect answer
    that would take the verdict's place if it were accepted.
    """

    assignment: Assignment
    verdict: Verdict | None
    grades: int
    end: End | None
    seconds: float | None
    review: Verdict | None = None


@contextlib.contextmanager
def opened(paths: Sequence[Path], also: Sequence[type[Base]] = ()) -> Iterator[Connection]:
    """Open one database, or several as one, for reading. Be brief: the writer of a live shard waits meanwhile.

    Of several, the tables that queries here look at are read into memory, and `also` these.

    Raises:
        ShardError: one is missing, damaged or not ours, or two of them contradict each other.
    """
    if len(paths) == 1:
        with _one(paths[0]) as connection:
            yield connection
        return
    with connected(None, "rwc", begin=None) as connection:
        create_schema(connection)
        create_indexes(connection)
        for path in paths:
            with _one(path):  # is it there, and ours?
                pass
            with attached(connection, path):
                take(connection, path, (Setup, Episode, Grade, Disqualification, *also), HEAVY)
        yield connection


@contextlib.contextmanager
def _one(path: Path) -> Iterator[Connection]:
    with connected(path, "ro") as connection:
        if identify(connection, path) is None:
            raise ShardError(f"{path}: an empty file: the judge that writes it has stored nothing yet; try again later")
        yield connection


def counts(db: Connection) -> Counts:
    """How many setups, episodes and grades there are, and grades by kind and by outcome."""
    recorded, known = _episodes(db)
    return Counts(
        setups=db.execute(select(func.count()).select_from(Setup)).scalar_one(),
        episodes=sum(known.values()),
        unrecorded_episodes=sum(known.values()) - sum(recorded.values()),
        grades=db.execute(select(func.count()).select_from(Grade)).scalar_one(),
        by_kind=dict(db.execute(select(Grade.kind, func.count()).group_by(Grade.kind)).all()),
        by_outcome=dict(db.execute(select(Grade.outcome, func.count()).group_by(Grade.outcome)).all()),
    )


def _episodes(db: Connection) -> tuple[dict[str, int], dict[str, int]]:
    """Episodes a setup: those with a record, and all that are known by a record or by a grade."""
    with_grade = select(Grade.setup, Grade.job_id, Grade.label).where(Grade.label.is_not(None))
    every = select(Episode.setup, Episode.job_id, Episode.label).union(with_grade).subquery()
    recorded = select(Episode.setup, func.count()).where(Episode.end.is_not(None)).group_by(Episode.setup)
    known = select(every.c.setup, func.count()).group_by(every.c.setup)
    return dict(db.execute(recorded).all()), dict(db.execute(known).all())


def by_setup(db: Connection) -> list[SetupCounts]:
    """One line a setup, in alphabetical order; a setup without any grade too."""
    _, episodes = _episodes(db)
    faults = func.sum(cast(Grade.outcome == Outcome.JUDGE_FAULT, Integer))
    grades = {
        setup: (number, faulty)
        for setup, number, faulty in db.execute(select(Grade.setup, func.count(), faults).group_by(Grade.setup))
    }
    of_all = docket(db)
    found, open_ones = answers.verdicts(of_all), Counter(one.assignment.setup for one in answers.reviews(of_all))
    lines = []
    for setup in db.execute(select(Setup.setup).order_by(Setup.setup)).scalars():
        own = [verdict for verdict in found if verdict.assignment.setup == setup]
        number, faulty = grades.get(setup, (0, 0))
        lines.append(
            SetupCounts(
                setup=setup,
                episodes=episodes.get(setup, 0),
                grades=number,
                verdicts=len(own),
                solved=sum(verdict.solved for verdict in own),
                faster=sum(verdict.faster is True for verdict in own),
                suspect=open_ones[setup],
                judge_faults=faulty,
            )
        )
    return lines


def verdicts(db: Connection) -> list[Verdict]:
    """The answer that counts for each (setup, kernel, slot) which has one, in this order.

    It is an accepted submit (whoever sent it) in the final attempt of the latest episode that has a valid one: its
    first in single and blind mode, its last valid one in multi mode. Its newest valid final grade, under a final
    protocol, replaces what it found.

    Nothing is answered by a grade that is disqualified, or suspect and not accepted, or whose reason is an
    operator's or the judge's (`infra:`, `budget:`, `task:`), nor by what came before an operator declared the work
    owed: what was valid before stays. Ad hoc grades answer nothing, nor does a grade of another kernel than its
    episode's.
    """
    return answers.verdicts(docket(db))


def docket(db: Connection) -> answers.Docket:
    """All that the answers are chosen from, for `answers.verdicts` and `answers.reviews`."""
    ruled = standing(db)
    finals: dict[str, list[Verdict]] = {}
    for row in db.execute(_FINALS):
        finals.setdefault(row.of_grade_id, []).append(_verdict(row, ruled))
    newest = {
        Assignment(row.setup, row.kernel, row.slot): row
        for row in db.execute(_DECLARED)
        if ruled.get(row.grade_id) is not Ruling.DISQUALIFIED
    }
    # A withdrawal is a declaration as well, with another reason.
    declared = {
        place: row.requested_at for place, row in newest.items() if (row.reason or "").startswith(answers.OWED_REASONS)
    }
    given = [(_verdict(row, ruled), row.submission_mode) for row in db.execute(_accepted())]
    return answers.Docket(given, finals, declared)


def _verdict(row: Any, ruled: Mapping[str, Ruling]) -> Verdict:
    return Verdict(
        assignment=Assignment(row.setup, row.kernel, row.slot),
        interval=None if row.interval_lo is None else (row.interval_lo, row.interval_hi),
        ruling=ruled.get(row.grade_id),
        **{name: getattr(row, name) for name in _VERDICT_COLUMNS},
    )


def _accepted() -> Select[Any]:
    """Accepted submits of final attempts, by assignment, then episode, then time; each with its setup's mode."""
    seen = (
        select(Grade.job_id, Grade.label, func.max(Grade.attempt).label("last"))
        .group_by(Grade.job_id, Grade.label)
        .subquery()
    )
    return (
        select(*_COLUMNS, Setup.submission_mode)
        .join(Setup, Setup.setup == Grade.setup)
        .join(seen, (seen.c.job_id == Grade.job_id) & (seen.c.label == Grade.label))
        .outerjoin(Episode, (Episode.job_id == Grade.job_id) & (Episode.label == Grade.label))
        .where(
            Grade.job_id != ADHOC,
            Grade.kind.in_(ANSWER_KINDS),
            Grade.outcome != Outcome.JUDGE_FAULT,
            Grade.attempt == func.coalesce(Episode.attempts, seen.c.last),
            OWN_KERNEL,
        )
        .order_by(
            *(Grade.setup, Grade.kernel, Grade.slot, Grade.job_id, Grade.label),
            *(Grade.requested_at, Grade.grade_id),
        )
    )


# An episode has one kernel, which the judge holds its token to; a grade of another one answers nothing.
OWN_KERNEL = Episode.kernel.is_(None) | (Episode.kernel == Grade.kernel)
_VERDICT_COLUMNS = (
    *("grade_id", "job_id", "label", "attempt", "rank", "kind", "outcome", "preset", "score", "faster", "suspect"),
    *("protocol", "task_hash", "requested_at", "reason"),
)
_COLUMNS = [
    getattr(Grade, name)
    for name in (*_VERDICT_COLUMNS, "setup", "kernel", "slot", "interval_lo", "interval_hi", "of_grade_id")
]
_FINAL_PROTOCOLS = [stamp for stamp, protocol in PROTOCOLS.items() if protocol.role is ProtocolRole.FINAL]
_FINALS = (
    select(*_COLUMNS)
    .where(
        Grade.job_id != ADHOC,
        Grade.kind == Kind.FINAL,
        Grade.of_grade_id.is_not(None),
        Grade.outcome != Outcome.JUDGE_FAULT,
        Grade.protocol.in_(_FINAL_PROTOCOLS),
    )
    .order_by(Grade.requested_at.desc(), Grade.grade_id.desc())
)
_DECLARED = select(*_COLUMNS).where(Grade.kind == Kind.DECLARED).order_by(Grade.requested_at)


def table(db: Connection) -> list[TableRow]:
    """One row for every assignment that an episode or a grade speaks of, by setup, kernel and slot."""
    of_all = docket(db)
    answered, suspect = (
        {one.assignment: one for one in chosen(of_all)} for chosen in (answers.verdicts, answers.reviews)
    )
    of_grade, of_episode = (
        (Grade.setup, Grade.kernel, Grade.slot),
        (Episode.setup, Episode.kernel, Episode.slot),
    )
    same_episode = (Episode.job_id == Grade.job_id) & (Episode.label == Grade.label)
    own = select(*of_grade, func.count()).outerjoin_from(Grade, Episode, same_episode).where(OWN_KERNEL)
    grades = {
        Assignment(setup, kernel, slot): number
        for setup, kernel, slot, number in db.execute(own.group_by(*of_grade))
        if setup is not None
    }
    ended = select(*of_episode, Episode.end, Episode.wall_s).order_by(Episode.ended_at)
    episodes = {Assignment(*row[:3]): (row[3], row[4]) for row in db.execute(ended)}
    return [
        TableRow(one, answered.get(one), grades.get(one, 0), *episodes.get(one, (None, None)), suspect.get(one))
        for one in sorted({*grades, *episodes})
    ]
