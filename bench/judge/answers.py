"""What a report becomes: the answer that leaves (on `/submit` without the hidden inputs), and the row."""

from dataclasses import dataclass

from bench.config import JudgeConfig
from bench.judge.admission import Route, Submission
from bench.judge.schemas import Outcome
from bench.records import GradeOrder, GradeReport, SourceFile
from bench.results.rows import GradeOrigin
from bench.seeds import commitment

FAULT = "judge"
FAULT_ADVICE = "the judge failed, not the submission; send the request again with the same Idempotency-Key"


@dataclass(frozen=True)
class Server:
    """Which code answers, and where: the same on every row of this process."""

    host: str
    package_version: str
    package_commit: str | None
    checkout_commit: str | None = None


@dataclass(frozen=True)
class Course:
    """How one grade went in time: UTC in ISO 8601, milliseconds. `fault` is the judge's, if it failed."""

    requested_at: str
    finished_at: str
    queue_ms: float
    grade_ms: float
    fault: str | None = None


def order_for(submission: Submission, grade_id: str, seed: bytes, config: JudgeConfig) -> GradeOrder:
    """What the measuring process is told."""
    preview = submission.route is Route.SCORE
    return GradeOrder(
        grade_id=grade_id,
        kind=submission.kind,
        kernel=submission.kernel,
        language=submission.language,
        source=submission.source,
        library=str(submission.library) if submission.library else None,
        workspace_bytes=submission.workspace_bytes,
        preset=submission.caller.setup.preset,
        protocol=config.preview_protocol if preview else config.final_protocol,
        seed=seed.hex(),
        disclose=preview,
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


def answer_text(submission: Submission, report: GradeReport, rank: int) -> str:
    """The answer as JSON text; the same text is stored, and sent whenever the grade is asked for."""
    return report.answer(submission.kernel, rank, disclose=submission.route is Route.SCORE).model_dump_json()


def origin_of(submission: Submission, answer: str, course: Course, server: Server) -> GradeOrigin:
    """The row's part that the judge knows beside the report."""
    caller, beside = submission.caller, submission.beside
    return GradeOrigin(
        kind=submission.kind,
        kernel=submission.kernel,
        language=submission.language,
        answer=answer,
        requested_at=course.requested_at,
        finished_at=course.finished_at,
        host=server.host,
        package_version=server.package_version,
        package_commit=server.package_commit,
        checkout_commit=server.checkout_commit,
        setup=caller.setup.setup if caller.label else None,
        label=caller.label,
        slot=caller.episode.slot if caller.episode else 0,
        attempt=beside.attempt,
        home_rank=beside.home_rank,
        of_grade_id=beside.of_grade,
        reason=f"infra: {course.fault}" if course.fault else None,
        tokens_spent=beside.tokens,
        idempotency_key=beside.key,
        body_sha256=submission.body_sha256,
        queue_ms=course.queue_ms,
        grade_ms=course.grade_ms,
    )
