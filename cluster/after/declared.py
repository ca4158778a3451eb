"""What an operator declares owed: failed grades of the kind `declared`, in a database beside the run directories."""

import hashlib
import platform
import uuid
from datetime import UTC, datetime
from pathlib import Path

from bench.judge.schemas import Kind, Outcome, Problem, SetupRecord
from bench.records import GradeReport
from bench.results.rows import GradeOrigin
from bench.results.shard import Shard
from bench.version import package_version

DECLARED = Kind.DECLARED.value
WITHDRAWN = "withdrawn"  # in the place of a class: earlier declarations of the slot no longer hold
_NONE = "none"  # what a grade has and a declaration does not


def declared_databases(root: Path) -> list[Path]:
    """Every database of declarations beside the runs of a folder: `<RUN_ROOT>/declared/<setup>-<hash8>.db`."""
    return sorted((root / DECLARED).glob("*.db"))


def _database(root: Path, record: SetupRecord) -> Path:
    """One for each definition that a setup has had, since no database holds two of them."""
    definition = hashlib.sha256(record.model_dump_json().encode()).hexdigest()
    return root / DECLARED / f"{record.setup}-{definition[:8]}.db"


def declare(root: Path, record: SetupRecord, problem: Problem, reason: str) -> str:
    """Record a declaration; returns the id of its grade. Operators may declare at the same time.

    Raises:
        ShardError: the database cannot be written.
    """
    grade_id, now = str(uuid.uuid4()), datetime.now(UTC).isoformat(timespec="milliseconds")
    report = GradeReport(
        grade_id=grade_id,
        outcome=Outcome.JUDGE_FAULT,  # the one failure that says nothing of a submission
        log=reason,
        protocol=_NONE,
        preset=record.preset,
        seed_commitment=_NONE,
        sandbox=_NONE,
    )
    origin = GradeOrigin(
        kind=Kind.DECLARED,
        kernel=problem.kernel,
        language=problem.language,
        setup=record.setup,
        slot=problem.slot,
        reason=reason,
        answer=report.answer(problem.kernel, 0, disclose=True).model_dump_json(),
        requested_at=now,
        finished_at=now,
        host=platform.node(),
        package_version=package_version(),
    )
    with Shard.open(_database(root, record), DECLARED, 0, {record.setup: record}, shared=True) as shard:
        shard.record(origin, report)
    return grade_id
