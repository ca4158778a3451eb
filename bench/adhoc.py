"""Grades one file here and now, outside of any job, and keeps the row under the run id `adhoc`."""

import platform
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import process, seeds
from bench.court import Court
from bench.errors import ShardError, UsageError
from bench.grade import grade
from bench.judge.schemas import ADHOC, Kind, Language, Preset, ProfileTool
from bench.measure.protocols import ProtocolRole, find_protocol
from bench.places import run_root
from bench.profile import check_language, profile
from bench.records import GradeOrder, GradeReport, Lacking, ProfileOrder, ProfileReport
from bench.results.rows import GradeOrigin
from bench.results.shard import Shard
from bench.task import find_task, tasks_root
from bench.version import checkout_commit, commit, package_version


def adhoc_database() -> Path:
    """Where ad hoc grades are kept: `<RUN_ROOT>/adhoc/grades.db`."""
    return run_root() / ADHOC / "grades.db"


def check_database() -> None:
    """Raises UsageError now, rather than after the grade, when its row could not be kept."""
    try:
        Shard.open(adhoc_database(), ADHOC, 0, shared=True).close()
    except ShardError as error:
        raise UsageError(f"{error}; RUN_ROOT names the folder that ad hoc grades are kept in") from error


@dataclass(frozen=True)
class Graded:
    """A grade made here; `lost` says why its row is not in the database, if it is not."""

    report: GradeReport
    lost: str | None = None


def language_of(path: Path) -> Language:
    """Raises UsageError when the suffix belongs to no language."""
    try:
        return Language.of(path)
    except ValueError as error:
        raise UsageError(f"{path}: {error}; or say --language") from error


def read_source(path: Path) -> str:
    """Raises UsageError when the file cannot be read or is not UTF-8 text."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: is not UTF-8 text (byte {error.start}); a submission is source text") from error


def grade_file(court: Court, kernel: str, path: Path, language: Language, preset: Preset, protocol: str) -> Graded:
    """Grade one file and keep the row.

    Raises:
        UsageError: the kernel, the protocol or the file does not fit, or there is no place for the row.
    """
    _check_task(kernel, language)
    try:
        court.device_of(language)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error
    kinds = {ProtocolRole.PREVIEW: Kind.SCORE, ProtocolRole.CALIBRATION: Kind.CALIBRATION}
    grade_id = str(uuid.uuid4())
    order = GradeOrder(
        grade_id=grade_id,
        kind=kinds.get(find_protocol(protocol).role, Kind.SUBMIT),
        kernel=kernel,
        language=language,
        source=read_source(path),
        preset=preset,
        protocol=protocol,
        seed=seeds.request_seed(seeds.new_root(), ADHOC, grade_id).hex(),
        disclose=True,
    )
    check_database()
    process.adopt_orphans()
    started = datetime.now(UTC)
    report = grade(order, court)
    process.sweep()
    try:
        record(order, report, started)
    except ShardError as error:
        return Graded(report, str(error))
    return Graded(report)


def profile_file(
    court: Court, kernel: str, path: Path, language: Language, tool: ProfileTool
) -> ProfileReport | Lacking:
    """Profile one file, on the same inputs every time; nothing is kept.

    Raises:
        UsageError: the kernel, the language or the file does not fit.
    """
    _check_task(kernel, language)
    check_language(language, tool)
    seed = seeds.profile_seed(None, ADHOC).hex()
    order = ProfileOrder(kernel=kernel, language=language, source=read_source(path), tool=tool, seed=seed)
    process.adopt_orphans()
    found = profile(order, court)
    process.sweep()
    return found


def _check_task(kernel: str, language: Language) -> None:
    if lacking := find_task(kernel).lacks(language):
        raise UsageError(lacking)


def record(order: GradeOrder, report: GradeReport, started: datetime, of_grade_id: str | None = None) -> None:
    """Keep a grade made here in the ad hoc database, with its seed: that is of no use to any other grade."""
    origin = GradeOrigin(
        kind=order.kind,
        kernel=order.kernel,
        language=order.language,
        answer=report.answer(order.kernel, 0, disclose=True).model_dump_json(),
        requested_at=started.isoformat(),
        finished_at=datetime.now(UTC).isoformat(),
        host=platform.node(),
        package_version=package_version(),
        package_commit=commit(),
        checkout_commit=None if of_grade_id else checkout_commit(tasks_root()),  # a regrade uses no corpus
        of_grade_id=of_grade_id,
        grade_ms=report.stages_ms["total"],
    )
    with Shard.open(adhoc_database(), ADHOC, 0, shared=True) as shard:
        shard.record(origin, report, reveal=bytes.fromhex(order.seed))


def as_json(kernel: str, report: GradeReport) -> dict[str, Any]:
    """The answer with what a person at a terminal wants beside it: inputs, build, sandbox, overhead."""
    build = report.provenance.get("build", {})
    return {
        **report.answer(kernel, 0, disclose=True).model_dump(mode="json"),
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
        "quiet": report.provenance.get("quiet", []),
        "overhead_ms": report.overhead_ms,
        "stages_ms": report.stages_ms,
    }
