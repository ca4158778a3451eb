"""Grades one file here and now, outside of any job, and keeps the row under the run id `adhoc`."""

import os
import platform
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import process, seeds
from bench.court import Court
from bench.errors import UsageError
from bench.grade import grade
from bench.judge.schemas import ADHOC, Answer, Kind, Language, Preset
from bench.measure.protocols import ProtocolRole, find_protocol
from bench.records import GradeOrder, GradeReport
from bench.results.rows import GradeOrigin
from bench.results.shard import Shard
from bench.task import find_task
from bench.version import commit, package_version


def adhoc_database() -> Path:
    """Where ad hoc grades are kept: `<RUN_ROOT>/adhoc/grades.db`."""
    return Path(os.environ.get("RUN_ROOT") or ".scratch/runs") / ADHOC / "grades.db"


def language_of(path: Path) -> Language:
    """Raises UsageError when the suffix belongs to no language."""
    for language in Language:
        if path.suffix == language.suffix:
            return language
    known = ", ".join(f"{language.suffix} ({language})" for language in Language)
    raise UsageError(f"{path}: no language has the suffix '{path.suffix}'; known: {known}; or say --language")


def read_source(path: Path) -> str:
    """Raises UsageError when the file cannot be read or is not UTF-8 text."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: is not UTF-8 text (byte {error.start}); a submission is source text") from error


def grade_file(court: Court, kernel: str, path: Path, language: Language, preset: Preset, protocol: str) -> GradeReport:
    """Grade one file.

    Raises:
        UsageError: the kernel, the protocol or the file does not fit.
    """
    task = find_task(kernel)
    if language not in task.manifest.languages:
        known = ", ".join(task.manifest.languages)
        raise UsageError(f"{kernel} is not graded in {language}; its languages: {known}")
    final = find_protocol(protocol).role is not ProtocolRole.PREVIEW
    grade_id = str(uuid.uuid4())
    order = GradeOrder(
        grade_id=grade_id,
        kind=Kind.SUBMIT if final else Kind.SCORE,
        kernel=kernel,
        language=language,
        source=read_source(path),
        preset=preset,
        protocol=protocol,
        seed=seeds.request_seed(seeds.new_root(), ADHOC, grade_id).hex(),
        disclose=True,
    )
    process.adopt_orphans()
    started = datetime.now(UTC)
    report = grade(order, court)
    process.sweep()
    _record(order, report, started)
    return report


def _record(order: GradeOrder, report: GradeReport, started: datetime) -> None:
    origin = GradeOrigin(
        kind=order.kind,
        kernel=order.kernel,
        language=order.language,
        answer=answer(order.kernel, report).model_dump_json(),
        requested_at=started.isoformat(),
        finished_at=datetime.now(UTC).isoformat(),
        host=platform.node(),
        package_version=package_version(),
        package_commit=commit(),
        grade_ms=report.stages_ms["total"],
    )
    with Shard.open(adhoc_database(), ADHOC, 0, shared=True) as shard:
        # Its seed is of no use to any other grade, so it need not wait for a merge.
        shard.record(origin, report, reveal=bytes.fromhex(order.seed))


def answer(kernel: str, report: GradeReport) -> Answer:
    """The answer that `/score` would give."""
    detail = {**report.detail, "property": report.property, "log": report.log}
    fields = report.model_dump(include={"grade_id", "outcome", "score", "interval", "faster", "suspect", "protocol"})
    return Answer(kernel=kernel, rank=0, detail=detail, **fields)


def as_json(kernel: str, report: GradeReport) -> dict[str, Any]:
    """The answer with what a person at a terminal wants beside it: inputs, build, sandbox, overhead."""
    build = report.provenance.get("build", {})
    return {
        **answer(kernel, report).model_dump(mode="json"),
        "raw_ratio": report.raw_ratio,
        "preset": report.preset,
        "inputs": [
            {
                "sizes": cell.sizes,
                "ratio": cell.ratio,
                "raw": cell.raw,
                "p": cell.p,
                "candidate_ns": cell.candidate_ns,
                "denominator_ns": cell.denominator_ns,
                "repeated": cell.repeated,
            }
            for cell in report.cells
        ],
        "build": {**build, "seconds": report.stages_ms.get("build", 0.0) / 1e3},
        "sandbox": report.sandbox,
        "overhead_ms": report.overhead_ms,
        "stages_ms": report.stages_ms,
    }
