"""Submission: a request to grade that was checked, and the records it becomes: the judge's order and the row."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.config import JudgeConfig
from bench.judge.caller import Caller, RequestHeaders
from bench.judge.scheduler import Graded
from bench.judge.schemas import InputMode, Kind, Language, Outcome
from bench.records import GradeOrder, GradeReport, SourceFile
from bench.results.rows import GradeOrigin
from bench.seeds import commitment

FAULT = "judge"
FAULT_ADVICE = "the judge failed, not the submission; send the request again with the same Idempotency-Key"


@dataclass(frozen=True)
class Submission:
    """A request that is right in itself: whose, what, and by which key it is known. `library` is a path."""

    kind: Kind
    caller: Caller
    headers: RequestHeaders
    kernel: str
    language: Language
    source: str | None
    library: Path | None
    workspace_bytes: int
    body_sha256: str

    @property
    def is_preview(self) -> bool:
        """Whether it came to `/score`; everything else comes to `/submit`."""
        return self.kind is Kind.SCORE


@dataclass(frozen=True)
class Server:
    """Which code answers, and where: the same on every row of this process."""

    host: str
    package_version: str
    package_commit: str | None
    checkout_commit: str | None


def order_for(submission: Submission, grade_id: str, seed: bytes, config: JudgeConfig) -> GradeOrder:
    """What the measuring process is told."""
    return GradeOrder(
        grade_id=grade_id,
        kind=submission.kind,
        kernel=submission.kernel,
        language=submission.language,
        source=submission.source,
        library=str(submission.library) if submission.library else None,
        binding=submission.language is Language.PYTHON and config.input_mode in (InputMode.PY_BINDING, InputMode.ANY),
        workspace_bytes=submission.workspace_bytes,
        preset=submission.caller.setup.preset,
        protocol=config.preview_protocol if submission.is_preview else config.final_protocol,
        seed=seed.hex(),
        disclose=submission.is_preview,
    )


def fault_report(order: GradeOrder, fault: str, sandbox: str, device: str) -> GradeReport:
    """The report of a grade that the judge itself failed at."""
    name = f"{order.kernel}{order.language.suffix}"
    content = (order.source or "").encode()
    return GradeReport(
        grade_id=order.grade_id,
        outcome=Outcome.JUDGE_FAULT,
        property=FAULT,
        log=FAULT_ADVICE,
        provenance={"fault": fault},
        protocol=order.protocol,
        preset=order.preset,
        seed_commitment=commitment(bytes.fromhex(order.seed)),
        sandbox=sandbox,
        device=device,
        sources=(SourceFile(role="submission", name=name, content=content),) if order.source else (),
    )


def origin_of(submission: Submission, answer: str, requested_at: str, graded: Graded, server: Server) -> GradeOrigin:
    """The part of the row that the judge knows beside the report."""
    caller, headers = submission.caller, submission.headers
    return GradeOrigin(
        kind=submission.kind,
        kernel=submission.kernel,
        language=submission.language,
        answer=answer,
        requested_at=requested_at,
        finished_at=now(),
        host=server.host,
        package_version=server.package_version,
        package_commit=server.package_commit,
        checkout_commit=server.checkout_commit,
        setup=caller.setup.setup if caller.label else None,
        label=caller.label,
        slot=caller.episode.slot if caller.episode else 0,
        attempt=headers.attempt,
        home_rank=headers.home_rank,
        of_grade_id=headers.of_grade,
        reason=f"infra: {graded.fault}" if graded.fault else None,
        tokens_spent=headers.tokens,
        idempotency_key=headers.key,
        body_sha256=submission.body_sha256,
        queue_ms=graded.queue_ms,
        grade_ms=graded.grade_ms,
    )


def now() -> str:
    """UTC in ISO 8601, with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
