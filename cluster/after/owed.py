"""What a planned slot counts as: delivered, owed and in which class, running, or under review. A pure function."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from bench.judge.schemas import ANSWER_KINDS, Kind, Outcome, SubmissionMode
from bench.results.owed import SeenEpisode, SeenGrade
from bench.results.queries import Assignment
from cluster.job.summary import BUDGET_ENDS, OwedClass
from cluster.study.status import Tally


class Part(StrEnum):
    """What a planned slot counts as; the parts add up to what is planned. `running`: its setup waits or runs."""

    DELIVERED = "delivered"
    OWED = "owed"
    RUNNING = "running"
    REVIEW = "review"


@dataclass(frozen=True)
class Rulings:
    """Ids of grades that an operator has disqualified, and of suspect ones that were accepted."""

    disqualified: frozenset[str] = frozenset()
    accepted: frozenset[str] = frozenset()


@dataclass
class History:
    """All that is known of one slot. `finals` has the final verdicts of its answers by the id of the answer."""

    episodes: list[SeenEpisode] = field(default_factory=list)
    grades: list[SeenGrade] = field(default_factory=list)
    finals: dict[str, list[SeenGrade]] = field(default_factory=dict)


@dataclass(frozen=True)
class Standing:
    """What a slot counts as, why, and by which episode or grade; `owed` where it is owed, no `why` when delivered."""

    part: Part
    owed: OwedClass | None = None
    why: str | None = None
    episode: SeenEpisode | None = None
    grade: SeenGrade | None = None

    @property
    def job(self) -> str | None:
        """The job of that episode or grade."""
        about = self.episode or self.grade
        return about.job_id if about else None


def standing(
    history: History, mode: SubmissionMode, task_hashes: frozenset[str], rulings: Rulings = Rulings()
) -> Standing:
    """What a slot counts as by its history alone: delivered, under review or owed.

    The newest valid answer counts, judged by the newest final verdict on it; one that was declared owed counts no
    longer. `task_hashes` are those of the kernel today: a failure on another task is owed again.
    """
    declared = _declaration(history, rulings)
    suspect: Standing | None = None
    for episode, answer in _answers(history, mode):
        if declared and answer.requested_at <= declared.requested_at:
            break
        verdict = _verdict(history, answer)
        if rulings.disqualified & {answer.grade_id, verdict.grade_id}:
            continue
        if verdict.suspect and not rulings.accepted & {answer.grade_id, verdict.grade_id}:
            suspect = suspect or Standing(Part.REVIEW, None, f"suspect: {verdict.suspect}", episode, verdict)
            continue
        if verdict.outcome is Outcome.SOLVED or {answer.task_hash, verdict.task_hash} <= task_hashes:
            return Standing(Part.DELIVERED, episode=episode, grade=verdict)
        why = f"the answer is {verdict.outcome}, and the kernel's task has changed since"
        return Standing(Part.OWED, OwedClass.TASK, why, episode, verdict)
    return suspect or _owed(history, declared)


def _answers(history: History, mode: SubmissionMode) -> list[tuple[SeenEpisode, SeenGrade]]:
    """What episodes were answered with, the newest first: the first accepted submit of each, in multi mode any."""
    found = []
    for episode in history.episodes:
        accepted = [grade for grade in _submits(history, episode) if _is_accepted(grade)]
        found += [(episode, grade) for grade in (accepted if mode is SubmissionMode.MULTI else accepted[:1])]
    return sorted(found, key=lambda pair: _when(pair[1]), reverse=True)


def _submits(history: History, episode: SeenEpisode) -> list[SeenGrade]:
    """What was submitted in the final attempt of an episode, in order."""
    found = [
        grade
        for grade in history.grades
        if (grade.job_id, grade.label, grade.attempt) == (episode.job_id, episode.label, episode.attempts)
        and grade.kind in ANSWER_KINDS
    ]
    return sorted(found, key=_when)


def _is_accepted(grade: SeenGrade) -> bool:
    return grade.outcome is not Outcome.JUDGE_FAULT and _blamed(grade) is None


def _when(grade: SeenGrade) -> tuple[str, str]:
    return grade.requested_at, grade.grade_id


def _verdict(history: History, answer: SeenGrade) -> SeenGrade:
    """The newest final verdict on an answer, or the answer itself; a fault of the judge is no verdict."""
    finals = [grade for grade in history.finals.get(answer.grade_id, ()) if grade.outcome is not Outcome.JUDGE_FAULT]
    return max(finals, key=_when, default=answer)


def _declaration(history: History, rulings: Rulings) -> SeenGrade | None:
    """The operator's newest word that the slot is owed, unless it was taken back."""
    declared = (
        grade for grade in history.grades if grade.kind is Kind.DECLARED and grade.grade_id not in rulings.disqualified
    )
    newest = max(declared, key=_when, default=None)
    return newest if newest and _blamed(newest) else None


def _blamed(grade: SeenGrade) -> OwedClass | None:
    """The class that a failed grade's reason names: `infra: the disk was full`."""
    word = (grade.reason or "").partition(":")[0]
    return OwedClass(word) if grade.outcome is not Outcome.SOLVED and word in list(OwedClass) else None


def _owed(history: History, declared: SeenGrade | None) -> Standing:
    """In which class a slot without an answer is owed: by what was declared last, or how the last episode ended."""
    last = max(history.episodes, key=lambda one: (one.at, one.job_id, one.label), default=None)
    if declared and (last is None or last.at <= declared.requested_at):
        return Standing(Part.OWED, _blamed(declared), f"declared: {declared.reason}", grade=declared)
    if last is None:
        return Standing(Part.OWED, OwedClass.INFRA, "no job has been run for it")
    blame = OwedClass.BUDGET if last.end in BUDGET_ENDS else OwedClass.INFRA
    submitted = _submits(history, last)
    grade = submitted[-1] if submitted else None
    if grade is None:
        ended = f"the episode ended by '{last.end}' without a submit"
        return Standing(Part.OWED, blame, ended if last.end else "the episode left neither a record nor a submit", last)
    if not _is_accepted(grade):
        why = f"the submit was not graded: {grade.reason or grade.outcome}"
        return Standing(Part.OWED, _blamed(grade) or OwedClass.INFRA, why, last, grade)
    return Standing(Part.OWED, blame, "its answer is disqualified", last, grade)


@dataclass(frozen=True)
class PlannedSlot:
    """One planned (setup, kernel, slot) and what it counts as; `job` says so, and `log` is where to read on."""

    assignment: Assignment
    standing: Standing
    job: str | None = None
    log: Path | None = None

    def document(self) -> dict[str, Any]:
        """The slot with its evidence as JSON-able values."""
        found, episode = self.standing, self.standing.episode
        return {
            **self.assignment._asdict(),
            "part": found.part,
            "class": found.owed,
            "why": found.why,
            "job": self.job,
            "episode": episode.label if episode else None,
            "end": episode.end if episode else None,
            "end_code": episode.end_code if episode else None,
            "grade": found.grade.grade_id if found.grade else None,
            "log": str(self.log) if self.log else None,
        }


def tally(slots: Sequence[PlannedSlot]) -> Tally:
    """The sums of some slots."""
    return Tally.of(Part, ((slot.standing.part, slot.standing.owed) for slot in slots))


def by_setup(slots: Sequence[PlannedSlot]) -> dict[str, list[PlannedSlot]]:
    """Setup → its own slots, in the order of the plan."""
    groups: dict[str, list[PlannedSlot]] = {}
    for slot in slots:
        groups.setdefault(slot.assignment.setup, []).append(slot)
    return groups
