"""An answer for an episode that handed none in: its last correct preview, or (blind) the file it left."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

from agent.answers import SOURCE_CAP_BYTES, last_correct_score, read_calls
from agent.assignment import Assignment, Progress
from agent.budget import NEVER_PROMOTED
from agent.journal import read_left
from agent.judges import Judges
from agent.tools.settings import ToolSettings
from bench.judge.client import Envelope, JudgeRefused
from bench.judge.schemas import DRIVER_LABEL, Answer, End, GradeRequest, Kind, SubmissionMode


def leave_answer(job: Assignment, end: End, progress: Progress) -> None:
    """Promote or harvest for an episode whose final attempt handed nothing in."""
    if end in NEVER_PROMOTED or progress.tools is None or (progress.seen and progress.seen.submitted):
        return
    home, token = job.config.home_rank(job.index), job.token(DRIVER_LABEL)
    with closing(Judges(job.config.judge_urls, home, token, job.config.failover)) as judges:
        try:
            if answer := _answer(job, judges, progress.tools, progress.used.tokens):
                progress.outcome = answer.outcome
                job.report("answered", grade_id=answer.grade_id, outcome=answer.outcome)
        except JudgeRefused as refused:
            job.report("answer_refused", code=refused.code, why=refused.message)


def _answer(job: Assignment, judges: Judges, tools: ToolSettings, tokens: int) -> Answer | None:
    """The judge's answer to what the final attempt left; None when that is nothing."""
    envelope = Envelope(attempt=tools.attempt, tokens=tokens, episode=job.label)
    if tools.mode is SubmissionMode.BLIND:
        source = job.attempt_dir(tools.attempt) / "workspace" / tools.source_name
        envelope = replace(envelope, key=f"harvested-{job.label}", kind=Kind.HARVESTED)
    elif scored := last_correct_score(read_calls(tools.answers_file)):
        source, of_grade = tools.scored_source(scored.grade_id), scored.grade_id
        envelope = replace(envelope, key=f"promoted-{of_grade}", kind=Kind.PROMOTED, of_grade=of_grade)
    else:
        return None
    text = _text(source)
    if text is None:
        return None
    return judges.ask("submit", GradeRequest(kernel=tools.kernel, language=tools.language, source=text), envelope)


def _text(path: Path) -> str | None:
    """The text of a file that an agent left; None unless there is one of a sane size."""
    left = read_left(path, SOURCE_CAP_BYTES)
    try:
        return None if left is None else left.decode()
    except UnicodeDecodeError:
        return None
