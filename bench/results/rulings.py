"""What operators rule of single grades: disqualified, or accepted though suspect; either can be withdrawn."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, insert, select

from bench.errors import ShardError, UsageError
from bench.results.database import WriterLock, connected, identify
from bench.results.models import DatabaseKind, Disqualification, Grade, Ruling, table_of

# The command that makes each ruling, and takes it back.
COMMANDS = {Ruling.DISQUALIFIED: "kcourt disqualify", Ruling.ACCEPTED: "kcourt accept"}


def standing(db: Connection) -> dict[str, Ruling]:
    """Grade id → the ruling that stands on it."""
    rows = db.execute(select(Disqualification.grade_id, Disqualification.ruling).order_by(Disqualification.at)).all()
    return {grade_id: ruling for grade_id, ruling in dict(rows).items() if ruling is not Ruling.WITHDRAWN}


def rule(database: Path, grade_id: str, ruling: Ruling, by: str, why: str | None, withdraw: bool = False) -> None:
    """Add an operator's ruling on a grade of a merged database, or withdraw it; durable when this returns.

    A grade has one standing ruling at most: another one waits until that is withdrawn, so of two operators who rule
    at once the second is told what the first one said.

    Raises:
        UsageError: no such grade, it has a ruling already or none to withdraw, or it is not suspect.
        ShardError: the database is a shard, which is its judge's alone, or it cannot be read or written.
    """
    _refuse_shard(database)
    pragmas = ("synchronous = EXTRA",)
    with WriterLock(database), connected(database, "rw", begin="BEGIN IMMEDIATE", pragmas=pragmas) as db:
        identify(db, database)
        found = db.execute(select(Grade.suspect).where(Grade.grade_id == grade_id)).one_or_none()
        if found is None:
            listed = f"`kcourt db summary {database} --json` lists the answers' ids, its table `grades` has all"
            raise UsageError(f"{database}: no grade '{grade_id}'; {listed}")
        last = _last(db, grade_id)
        if refusal := _refusal(ruling, withdraw, found.suspect, last):
            raise UsageError(f"{database}: grade {grade_id} {refusal}")
        said = Ruling.WITHDRAWN if withdraw else ruling
        row = {"grade_id": grade_id, "at": _after(last), "ruling": said, "why": why, "by": by}
        db.execute(insert(Disqualification), row)
        db.commit()


def _refuse_shard(database: Path) -> None:
    with connected(database, "ro") as db:
        identity = identify(db, database)
    if identity is None:
        raise ShardError(f"{database}: an empty file; name a merged database")
    if identity.kind is DatabaseKind.SHARD:
        raise ShardError(
            f"{database}: the shard of job {identity.job_id} rank {identity.rank}, which only its judge writes;"
            " merge it (`kcourt db merge`) and rule in the merged database"
        )


def _last(db: Connection, grade_id: str) -> Any:
    table = table_of(Disqualification)
    return db.execute(select(table).where(table.c.grade_id == grade_id).order_by(table.c.at.desc())).first()


def _refusal(ruling: Ruling, withdraw: bool, suspect: str | None, last: Any) -> str | None:
    """Why a grade cannot be ruled on so, after its last ruling."""
    stands = None if last is None or last.ruling is Ruling.WITHDRAWN else last.ruling
    said = f"was {stands} by {last.by} at {last.at[:19]} ({last.why})" if stands else ""
    if withdraw:
        return None if stands is ruling else said or f"is not {ruling}; there is nothing to withdraw"
    if stands:
        return f"{said}; `{COMMANDS[stands]} --withdraw` takes that back"
    if ruling is Ruling.ACCEPTED and suspect is None:
        return "is not suspect: it counts without being accepted"
    return None


def _after(last: Any) -> str:
    """Now, in UTC; later than the last ruling also where another machine's clock is ahead of this one's."""
    now = datetime.now(UTC)
    if last is not None:
        now = max(now, datetime.fromisoformat(last.at) + timedelta(microseconds=1))
    return now.isoformat(timespec="microseconds")
