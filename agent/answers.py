"""An attempt's record of what it asked the judge: the one source for "submitted" and for promotion."""

from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from agent.journal import read_left
from bench.judge.schemas import Answer, Closed, GradeRequest, Outcome, ProfileAnswer, SearchAnswer

# The largest text that is sent as a submission, bytes.
SOURCE_CAP_BYTES = 4 << 20
# A record that is larger is none.
RECORD_CAP_BYTES = 64 << 20


class Refusal(Closed):
    """An error that a judge answered with; `status` is None when no answer came."""

    code: str
    status: int | None
    message: str


class Call(Closed):
    """One line of `answers.jsonl`: a call and either its answer or why there is none."""

    at: str
    route: Literal["score", "submit", "profile", "search"]
    key: str
    tokens: int
    answer: Answer | None = None
    profile: ProfileAnswer | None = None
    search: SearchAnswer | None = None
    refusal: Refusal | None = None


class Pending(Closed):
    """`pending.json`: the last submit that was sent, written before it left."""

    key: str
    tokens: int
    request: GradeRequest


def read_calls(path: Path) -> list[Call]:
    """The calls in `path`, oldest first; what is no call (a line cut by a kill) is passed over."""
    calls = []
    for line in (read_left(path, RECORD_CAP_BYTES) or b"").splitlines():
        try:
            calls.append(Call.model_validate_json(line))
        except ValidationError:
            continue
    return calls


def read_pending(path: Path) -> Pending | None:
    """The submit that was last sent, None when there is none that can be sent again."""
    try:
        return Pending.model_validate_json(read_left(path, RECORD_CAP_BYTES) or b"")
    except ValidationError:
        return None


def accepted_submit(calls: list[Call]) -> Answer | None:
    """The last submit that the judge recorded with any outcome but a fault of its own."""
    for call in reversed(calls):
        if call.route == "submit" and call.answer and call.answer.outcome is not Outcome.JUDGE_FAULT:
            return call.answer
    return None


def last_correct_score(calls: list[Call]) -> Answer | None:
    """The latest preview that was solved."""
    for call in reversed(calls):
        if call.route == "score" and call.answer and call.answer.outcome is Outcome.SOLVED:
            return call.answer
    return None
