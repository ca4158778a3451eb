"""One grade as rows: what the judge knows of it and what the grading process found, for each table."""

import hashlib
from dataclasses import asdict, dataclass
from typing import Any

from pydantic_core import to_json

from bench.judge.schemas import Kind, Language
from bench.records import GradeReport
from bench.results.database import Identity

_REPORT_COLUMNS = frozenset(
    {
        *("grade_id", "outcome", "property", "suspect", "score", "raw_ratio", "faster", "protocol", "preset"),
        *("device", "sandbox", "denominator", "task_hash", "policy_stamp", "seed_commitment", "overhead_ms"),
    }
)


@dataclass(frozen=True, kw_only=True)
class GradeOrigin:
    """What the judge knows of a grade beside its finding: who asked for it, when, and which code graded.

    `answer` is the JSON text that is sent; `requested_at` and `finished_at` are UTC in ISO 8601, `queue_ms`
    and `grade_ms` milliseconds. `home_rank` is given when another rank than the episode's own served it.
    `reason` says why a grade failed for another cause than the submission. An ad hoc grade has neither setup
    nor label.
    """

    kind: Kind
    kernel: str
    language: Language
    answer: str
    requested_at: str
    finished_at: str
    host: str
    package_version: str
    setup: str | None = None
    label: str | None = None
    slot: int = 0
    attempt: int = 1
    home_rank: int | None = None
    of_grade_id: str | None = None
    reason: str | None = None
    tokens_spent: int | None = None
    idempotency_key: str | None = None
    body_sha256: str | None = None
    package_commit: str | None = None
    checkout_commit: str | None = None
    queue_ms: float = 0.0
    grade_ms: float = 0.0


def grade_row(identity: Identity, origin: GradeOrigin, report: GradeReport) -> dict[str, Any]:
    """A row of `grades`."""
    low, high = report.interval or (None, None)
    home_rank = identity.rank if origin.home_rank is None else origin.home_rank
    return {
        **asdict(origin),
        **report.model_dump(include=set(_REPORT_COLUMNS)),
        "job_id": identity.job_id,
        "rank": identity.rank,
        "home_rank": home_rank,
        "interval_lo": low,
        "interval_hi": high,
        "provenance": json_text(report.provenance),
        "stages": json_text(report.stages_ms),
    }


def source_rows(report: GradeReport) -> list[dict[str, Any]]:
    """Rows of `sources`: each text once, by content."""
    contents = {_sha256(source.content): source.content for source in report.sources}
    return [{"sha256": digest, "size": len(content), "content": content} for digest, content in contents.items()]


def grade_source_rows(report: GradeReport) -> list[dict[str, Any]]:
    """Rows of `grade_sources`."""
    return [
        {
            "grade_id": report.grade_id,
            "role": source.role,
            "name": source.name,
            "sha256": _sha256(source.content),
        }
        for source in report.sources
    ]


def cell_rows(report: GradeReport) -> list[dict[str, Any]]:
    """Rows of `grade_cells`."""
    return [
        {
            **cell.model_dump(),
            "grade_id": report.grade_id,
            "sizes": json_text(cell.sizes),
            "candidate_ns": json_text(cell.candidate_ns),
            "denominator_ns": json_text(cell.denominator_ns),
        }
        for cell in report.cells
    ]


def json_text(value: Any) -> str:
    """Strict JSON: a NaN or an infinity becomes null."""
    return to_json(value, inf_nan_mode="null").decode()


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
