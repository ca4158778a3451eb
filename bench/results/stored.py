"""One grade as a database holds it: its finding, the texts that it was made of, and its seed."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, LargeBinary, RowMapping, cast, select

from bench.judge.schemas import Kind, Language, Outcome, Preset
from bench.records import Cell
from bench.results.models import Grade, GradeCell, GradeSource, Reveal, Source, table_of


@dataclass(frozen=True)
class StoredText:
    """One stored text: its content, and the sha256 (hex) that it is filed under."""

    name: str
    sha256: str
    content: bytes


@dataclass(frozen=True, kw_only=True)
class StoredGrade:
    """A grade with all that is needed to make it again; `texts` by role, `seed` in hex, None while it is secret."""

    grade_id: str
    job_id: str
    kernel: str
    kind: Kind
    language: Language
    preset: Preset
    protocol: str
    device: str
    outcome: Outcome
    property: str | None
    suspect: str | None
    score: float | None
    raw_ratio: float | None
    interval: tuple[float, float] | None
    sandbox: str
    denominator: str | None
    task_hash: str | None
    policy_stamp: str | None
    seed_commitment: str
    package_version: str
    package_commit: str | None
    requested_at: str
    provenance: dict[str, Any]
    cells: tuple[Cell, ...]
    texts: dict[str, StoredText]
    seed: str | None


_COLUMNS = (
    *("grade_id", "job_id", "kernel", "kind", "language", "preset", "protocol", "device", "outcome", "property"),
    *("suspect", "score", "raw_ratio", "sandbox", "denominator", "task_hash", "policy_stamp", "seed_commitment"),
    *("package_version", "package_commit", "requested_at"),
)


def stored_grade(db: Connection, grade_id: str) -> StoredGrade | None:
    """The grade of that id, or None where the database has none."""
    row = db.execute(select(table_of(Grade)).where(Grade.grade_id == grade_id)).mappings().one_or_none()
    if row is None:
        return None
    return StoredGrade(
        **{name: row[name] for name in _COLUMNS},
        interval=None if row["interval_lo"] is None else (row["interval_lo"], row["interval_hi"]),
        provenance=json.loads(row["provenance"]),
        cells=tuple(map(_cell, _cells(db, grade_id))),
        texts=_texts(db, grade_id),
        seed=db.execute(select(Reveal.seed).where(Reveal.grade_id == grade_id)).scalar_one_or_none(),
    )


def _cells(db: Connection, grade_id: str) -> Sequence[RowMapping]:
    wanted = select(table_of(GradeCell)).where(GradeCell.grade_id == grade_id).order_by(GradeCell.index)
    return db.execute(wanted).mappings().all()


def _cell(row: RowMapping) -> Cell:
    coded = {name: json.loads(row[name]) for name in ("sizes", "candidate_ns", "denominator_ns")}
    return Cell.model_validate({**{name: row[name] for name in row if name != "grade_id"}, **coded})


def _texts(db: Connection, grade_id: str) -> dict[str, StoredText]:
    """Texts by role, as bytes: who edits one by hand may leave text there."""
    wanted = (
        select(GradeSource.role, GradeSource.name, GradeSource.sha256, cast(Source.content, LargeBinary))
        .join(Source, Source.sha256 == GradeSource.sha256)
        .where(GradeSource.grade_id == grade_id)
    )
    return {role: StoredText(name, sha256, content) for role, name, sha256, content in db.execute(wanted)}
