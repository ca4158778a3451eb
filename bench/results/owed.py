"""What a database says of who answered what: episodes, answers, final verdicts and declarations; no texts or times."""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection

from bench.judge.schemas import ADHOC, ANSWER_KINDS, End, Kind, Outcome, SetupRecord
from bench.results.models import Ruling
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
    """What one database holds of some setups: their definitions there, episodes, grades that decide, and rulings.

    `rulings` has (when, which) by the id of the grade: the latest there.
    """

    setups: dict[str, SetupRecord]
    episodes: list[SeenEpisode]
    grades: list[SeenGrade]
    rulings: dict[str, tuple[str, Ruling]]


# Written out: SQLAlchemy would compile these anew for each of the hundreds of databases that a study leaves.
# Previews decide nothing, and are most of the rows.
_OURS = "job_id <> :adhoc AND setup IN (SELECT value FROM json_each(:setups))"
_GRADES = f"""
SELECT grade_id, job_id, label, setup, kernel, slot, attempt, rank, kind, outcome, suspect, reason, of_grade_id,
  task_hash, requested_at
FROM grades WHERE kind IN (SELECT value FROM json_each(:deciding)) AND {_OURS}"""
_RECORDED = f"""
SELECT job_id, label, setup, kernel, slot, "end", end_code, attempts, started_at
FROM episodes WHERE "end" IS NOT NULL AND {_OURS}"""
_UNRECORDED = f"""
SELECT job_id, label, setup, kernel, slot, attempt, min(requested_at) AS first
FROM grades g WHERE label IS NOT NULL AND kind IN (SELECT value FROM json_each(:asked)) AND {_OURS}
  AND NOT EXISTS (SELECT 1 FROM episodes e WHERE e.job_id = g.job_id AND e.label = g.label AND e."end" IS NOT NULL)
GROUP BY job_id, label, setup, kernel, slot, attempt ORDER BY first"""
_KINDS = {
    "adhoc": ADHOC,
    "deciding": json.dumps([*ANSWER_KINDS, Kind.FINAL, Kind.DECLARED]),
    "asked": json.dumps([*ANSWER_KINDS, Kind.SCORE]),
}


def seen(db: Connection, setups: Collection[str]) -> Seen:
    """All that decides what the slots of these setups count as. Ad hoc grades are left out: they answer nothing."""
    definitions = {row["setup"]: SetupRecord(**row) for row in db.exec_driver_sql("SELECT * FROM setups").mappings()}
    known = definitions.keys() & setups
    if not known:
        return Seen({}, [], [], {})
    asked = _KINDS | {"setups": json.dumps(sorted(known))}
    rows = db.exec_driver_sql(_GRADES, asked).all()
    ruled = db.exec_driver_sql("SELECT grade_id, at, ruling FROM disqualifications ORDER BY at").all()
    return Seen(
        {name: definitions[name] for name in known},
        list(_episodes(db, asked)),
        [_grade(*row) for row in rows],
        {grade_id: (at, Ruling(ruling)) for grade_id, at, ruling in ruled},
    )


def _grade(  # the columns of _GRADES
    grade_id: str,
    job_id: str,
    label: str | None,
    setup: str,
    kernel: str,
    slot: int,
    attempt: int,
    rank: int,
    kind: str,
    outcome: str,
    *rest: Any,
) -> SeenGrade:
    place = Assignment(setup, kernel, slot)
    return SeenGrade(grade_id, job_id, label, place, attempt, rank, Kind(kind), Outcome(outcome), *rest)


def _episodes(db: Connection, asked: dict[str, str]) -> Iterator[SeenEpisode]:
    """Recorded episodes, then those that are known by their grades alone: of the kernel of their first one."""
    for job_id, label, *place, end, end_code, attempts, at in db.exec_driver_sql(_RECORDED, asked).all():
        yield SeenEpisode(job_id, label, Assignment(*place), End(end), end_code, attempts or 1, at or "")
    known: dict[tuple[str, str], SeenEpisode] = {}
    for job_id, label, *place, attempt, at in db.exec_driver_sql(_UNRECORDED, asked).all():
        episode = SeenEpisode(job_id, label, Assignment(*place), None, None, attempt, at)
        earlier = known.setdefault((job_id, label), episode)
        known[job_id, label] = earlier._replace(attempts=max(attempt, earlier.attempts))
    yield from known.values()
