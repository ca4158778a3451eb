"""Which answer counts for each (setup, kernel, slot): pure functions over the grades that a database holds."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

from bench.judge.schemas import Kind, Outcome, Preset, SubmissionMode
from bench.results.models import Ruling

# How the reason of a failed grade begins where it was no fault of the submission, or an operator declared it owed.
OWED_REASONS = ("infra:", "budget:", "task:")


class Assignment(NamedTuple):
    """What an answer is the answer to: one kernel in one repeat slot of one setup."""

    setup: str
    kernel: str
    slot: int


@dataclass(frozen=True)
class Verdict:
    """The answer that counts for one (setup, kernel, slot). `interval` is the 90 % interval of the raw ratio.

    Where a final grade replaced what the answer had found, `of_grade_id` is the answer's own grade. Episode, kind and
    time stay the answer's, `grade_id` and what was found are those of the final grade.
    """

    assignment: Assignment
    grade_id: str
    job_id: str
    label: str
    attempt: int
    rank: int
    kind: Kind
    outcome: Outcome
    preset: Preset
    score: float | None
    interval: tuple[float, float] | None
    faster: bool | None
    suspect: str | None
    protocol: str
    task_hash: str | None
    requested_at: str
    reason: str | None = None
    ruling: Ruling | None = None
    of_grade_id: str | None = None

    @property
    def solved(self) -> bool:
        return self.outcome is Outcome.SOLVED

    @property
    def under_review(self) -> bool:
        """Flagged `suspect`, and nobody has ruled on it."""
        return self.suspect is not None and self.ruling is None


# What a final grade says instead of the answer that it grades.
_FOUND = (
    *("grade_id", "outcome", "preset", "score", "interval", "faster", "suspect", "protocol", "task_hash"),
    *("reason", "ruling"),
)


@dataclass(frozen=True)
class Docket:
    """All that answers are chosen from.

    `answers` are the accepted submits of final attempts with their setup's mode, by assignment, then episode, then
    time. `finals` are the final grades of an answer, by its grade id, the newest first. `declared` is the latest time
    at which an operator declared an assignment owed.
    """

    answers: Sequence[tuple[Verdict, SubmissionMode]]
    finals: Mapping[str, Sequence[Verdict]]
    declared: Mapping[Assignment, str]


def verdicts(docket: Docket) -> list[Verdict]:
    """The newest valid answer of each assignment that has one; see `queries.verdicts`."""
    return _newest(docket, lambda found: _holds(found) and not found.under_review)


def reviews(docket: Docket) -> list[Verdict]:
    """The answers that would count if they were not suspect, until somebody accepts or disqualifies them."""
    return [found for found in _newest(docket, _holds) if found.under_review]


def _holds(found: Verdict) -> bool:
    excused = not found.solved and (found.reason or "").startswith(OWED_REASONS)
    return found.ruling is not Ruling.DISQUALIFIED and not excused


def _newest(docket: Docket, counts: Callable[[Verdict], bool]) -> list[Verdict]:
    chosen = []
    for _, answers in groupby(docket.answers, key=lambda pair: pair[0].assignment):
        valid = list(_of_episodes(answers, docket, counts))
        if valid:
            chosen.append(max(valid, key=lambda found: (found.requested_at, found.of_grade_id or found.grade_id)))
    return chosen


def _of_episodes(
    answers: Iterator[tuple[Verdict, SubmissionMode]], docket: Docket, counts: Callable[[Verdict], bool]
) -> Iterator[Verdict]:
    """Each episode's answer where it counts: its first in single and blind mode, its last that counts in multi mode."""
    for _, pairs in groupby(answers, key=lambda pair: (pair[0].job_id, pair[0].label)):
        given, modes = zip(*pairs, strict=True)
        candidates = given[::-1] if modes[0] is SubmissionMode.MULTI else given[:1]
        yield from [found for answer in candidates if (found := _found(answer, docket, counts))][:1]


def _found(answer: Verdict, docket: Docket, counts: Callable[[Verdict], bool]) -> Verdict | None:
    """What an answer was found to be, by its newest final grade that counts or by itself."""
    taken_away = answer.requested_at <= docket.declared.get(answer.assignment, "")
    if taken_away or answer.ruling is Ruling.DISQUALIFIED:
        return None
    final = next(filter(counts, docket.finals.get(answer.grade_id, ())), None)
    if final:
        return replace(answer, of_grade_id=answer.grade_id, **{name: getattr(final, name) for name in _FOUND})
    return answer if counts(answer) else None
