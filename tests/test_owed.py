"""What a slot counts as: held against a slow model that is written from the tables, on generated histories."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.judge.schemas import END_CODES, End, Kind, Outcome, SubmissionMode
from bench.results.owed import SeenEpisode, SeenGrade
from bench.results.queries import Assignment
from cluster.after.owed import History, Part, PlannedSlot, Rulings, Standing, standing, tally
from cluster.job.summary import OwedClass

SLOT = Assignment("s", "axpy", 0)
NOW, BEFORE = "the task of today", "an earlier task"
CURRENT = frozenset({NOW})


def grade(number: int, at: int, **changes: Any) -> SeenGrade:
    facts: dict[str, Any] = {
        "grade_id": f"g{number}",
        "job_id": "1",
        "label": "s.n0.p0.w0",
        "assignment": SLOT,
        "attempt": 1,
        "rank": 0,
        "kind": Kind.SUBMIT,
        "outcome": Outcome.SOLVED,
        "suspect": None,
        "reason": None,
        "of_grade_id": None,
        "task_hash": NOW,
        "requested_at": f"{at:06}",
    }
    return SeenGrade(**(facts | changes))


def episode(number: int, at: int, end: End | None = End.SUBMITTED, attempts: int = 1) -> SeenEpisode:
    code = END_CODES.get(end) if end else None
    return SeenEpisode(str(number), f"s.n0.p0.w{number}", SLOT, end, code, attempts, f"{at:06}")


# Generated histories

REASONS = [None, None, None, "infra: the disk was full", "budget: too small", "task: it was wrong", "colour: blue"]
WORDS = ["infra: lost", "budget: short", "task: new", "withdrawn: no"]


@dataclass
class Case:
    """A generated history, and what an operator ruled."""

    history: History = field(default_factory=History)
    disqualified: set[str] = field(default_factory=set)
    accepted: set[str] = field(default_factory=set)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Up to three episodes of different jobs with up to four grades each, final verdicts on them, declarations."""
    sizes = draw(st.lists(st.integers(0, 4), max_size=3))
    finals, words = draw(st.integers(0, 3)), draw(st.lists(st.sampled_from(WORDS), max_size=2))
    times = draw(st.permutations(range(sum(sizes) + len(sizes) + finals + len(words))))
    case, taken = Case(), iter(times)
    history = case.history
    for number, size in enumerate(sizes):
        start, *asked = sorted(next(taken) for _ in range(size + 1))
        attempts = draw(st.integers(1, 2))
        history.episodes.append(episode(number, start, draw(st.sampled_from([*End, None])), attempts))
        for at in asked:
            history.grades.append(draw(grades(number, at)))
    answers = [one.grade_id for one in history.grades]
    for at in [next(taken) for _ in range(finals if answers else 0)]:
        of = draw(st.sampled_from(answers))
        history.finals.setdefault(of, []).append(draw(verdicts(of, at)))
    for word, at in zip(words, taken, strict=False):
        facts = {"kind": Kind.DECLARED, "label": None, "outcome": Outcome.JUDGE_FAULT, "reason": word}
        history.grades.append(grade(1000 + at, at, **facts))
    ids = [one.grade_id for some in [history.grades, *history.finals.values()] for one in some]
    if ids:
        case.disqualified = draw(st.sets(st.sampled_from(ids), max_size=2))
        case.accepted = draw(st.sets(st.sampled_from(ids), max_size=2))
    return case


FOUND = {
    "outcome": st.sampled_from([*Outcome, Outcome.SOLVED, Outcome.SOLVED]),
    "suspect": st.sampled_from([None, None, "too fast"]),
    "task_hash": st.sampled_from([NOW, BEFORE]),
}


@st.composite
def grades(draw: st.DrawFn, number: int, at: int) -> SeenGrade:
    kind = draw(st.sampled_from([Kind.SUBMIT, Kind.SUBMIT, Kind.PROMOTED, Kind.HARVESTED, Kind.SCORE, Kind.REGRADE]))
    found = draw(st.fixed_dictionaries(FOUND | {"reason": st.sampled_from(REASONS), "attempt": st.integers(1, 2)}))
    return grade(at, at, job_id=str(number), label=f"s.n0.p0.w{number}", kind=kind, **found)


@st.composite
def verdicts(draw: st.DrawFn, of: str, at: int) -> SeenGrade:
    return grade(at, at, kind=Kind.FINAL, label=None, of_grade_id=of, **draw(st.fixed_dictionaries(FOUND)))


# The slow model: the tables row by row, and what happened replayed from the first day to the last


def named_class(one: SeenGrade) -> str | None:
    """Failed with reason `infra:` / `budget:` / `task:`."""
    if one.outcome == "solved" or not one.reason:
        return None
    return {"infra": "infra", "budget": "budget", "task": "task"}.get(one.reason.split(":")[0])


def answers_of(run: SeenEpisode, case: Case, mode: SubmissionMode) -> list[SeenGrade]:
    """Answers an episode: submit, promoted or harvested, in its final attempt, and neither a fault nor blamed."""
    found = []
    for one in sorted(case.history.grades, key=lambda one: one.requested_at):
        if one.label != run.label or one.attempt != run.attempts:
            continue
        if one.kind not in ("submit", "promoted", "harvested"):
            continue
        if one.outcome == "judge_fault" or named_class(one):
            continue
        found.append(one)
    return found if mode == "multi" else found[:1]


def by_its_end(run: SeenEpisode, case: Case) -> str:
    """Class of a slot whose last episode answered nothing."""
    submits = [
        one
        for one in sorted(case.history.grades, key=lambda one: one.requested_at)
        if (one.label, one.attempt) == (run.label, run.attempts) and one.kind in ("submit", "promoted", "harvested")
    ]
    if submits and named_class(submits[-1]):
        return str(named_class(submits[-1]))
    if submits and submits[-1].outcome == "judge_fault":
        return "infra"
    return "budget" if run.end in ("time", "tokens", "context") else "infra"


def counts_as(answer: SeenGrade, case: Case) -> str:
    """What one answer counts as: delivered, task, review, or nothing."""
    judged = answer
    for final in sorted(case.history.finals.get(answer.grade_id, []), key=lambda one: one.requested_at):
        if final.outcome != "judge_fault":
            judged = final
    if answer.grade_id in case.disqualified or judged.grade_id in case.disqualified:
        return "nothing"
    if judged.suspect and answer.grade_id not in case.accepted and judged.grade_id not in case.accepted:
        return "review"
    if judged.outcome == "solved":
        return "delivered"
    return "delivered" if answer.task_hash == NOW and judged.task_hash == NOW else "task"


def model(case: Case, mode: SubmissionMode) -> tuple[str, str | None]:
    words = [one for one in case.history.grades if one.kind == "declared" and one.grade_id not in case.disqualified]
    words.sort(key=lambda one: one.requested_at)
    if words and words[-1].reason and words[-1].reason.startswith("withdrawn"):
        words = []
    days: list[tuple[str, str, SeenGrade]] = [(word.requested_at, "declared", word) for word in words]
    for run in case.history.episodes:
        days += [(one.requested_at, "answer", one) for one in answers_of(run, case, mode)]
    stands, under_review = None, False
    for _, what, one in sorted(days):
        if what == "declared":
            stands, under_review = None, False
            continue
        count = counts_as(one, case)
        stands = count if count in ("delivered", "task") else stands
        under_review = under_review or count == "review"
    if stands == "delivered":
        return "delivered", None
    if stands == "task":
        return "owed", "task"
    if under_review:
        return "review", None
    runs = sorted(case.history.episodes, key=lambda run: run.at)
    if words and not (runs and runs[-1].at > words[-1].requested_at):
        return "owed", named_class(words[-1])
    return "owed", by_its_end(runs[-1], case) if runs else "infra"


@given(cases(), st.sampled_from(SubmissionMode))
def test_a_slot_counts_as_the_tables_say(case: Case, mode: SubmissionMode) -> None:
    rulings = Rulings(frozenset(case.disqualified), frozenset(case.accepted))
    found = standing(case.history, mode, CURRENT, rulings)
    assert (found.part, found.owed) == model(case, mode)
    assert (found.owed is not None) == (found.part is Part.OWED)
    assert found.part is Part.DELIVERED or found.why


@given(st.lists(cases(), max_size=6))
def test_planned_is_the_sum_of_its_parts(several: list[Case]) -> None:
    slots = [PlannedSlot(SLOT, standing(one.history, SubmissionMode.SINGLE, CURRENT)) for one in several]
    sums = tally(slots)
    assert sums.planned == len(several) == sum(sums.parts.values())
    assert sum(sums.owed_by_class.values()) == sums.parts[Part.OWED]


# By table: each row of the rulings, so that a reader finds it

WRONG, FAULT = {"outcome": Outcome.WRONG}, {"outcome": Outcome.JUDGE_FAULT, "reason": "infra: the judge fell"}
OLD = {"task_hash": BEFORE}


@pytest.mark.parametrize(
    ("made", "end", "expected"),
    [
        pytest.param([], None, "owed infra", id="neither-record-nor-grade"),
        pytest.param([{}], End.CRASH, "delivered", id="solved-however-the-client-died"),
        pytest.param([OLD], End.SUBMITTED, "delivered", id="solved-before-the-task-changed"),
        pytest.param([WRONG], End.SUBMITTED, "delivered", id="wrong-on-the-task-of-today"),
        pytest.param([WRONG | OLD], End.SUBMITTED, "owed task", id="wrong-on-an-earlier-task"),
        pytest.param([FAULT], End.TIME, "owed infra", id="a-fault-whatever-the-end"),
        pytest.param([{"suspect": "too fast"}], End.SUBMITTED, "review", id="suspect"),
        pytest.param([WRONG | {"reason": "budget: x"}], End.SUBMITTED, "owed budget", id="failed-with-a-reason"),
        pytest.param([{"kind": Kind.SCORE}], End.CRASH, "owed infra", id="score-only"),
        *(
            pytest.param([{"kind": Kind.SCORE}], end, "owed budget", id=f"score-only-{end}")
            for end in (End.TIME, End.TOKENS, End.CONTEXT)
        ),
        *(
            pytest.param([], end, "owed infra", id=f"nothing-{end}")
            for end in End
            if end not in (End.TIME, End.TOKENS, End.CONTEXT)
        ),
    ],
)
def test_one_episode(made: list[dict[str, Any]], end: End | None, expected: str) -> None:
    run = episode(0, 0, end)
    asked = [grade(number, number + 1, job_id="0", label=run.label, **one) for number, one in enumerate(made)]
    found = standing(History([run], asked), SubmissionMode.SINGLE, CURRENT)
    assert " ".join(filter(None, (found.part, found.owed))) == expected


def test_a_slot_that_nobody_ran_is_owed_as_infra() -> None:
    found = standing(History(), SubmissionMode.SINGLE, CURRENT)
    assert found == Standing(Part.OWED, OwedClass.INFRA, "no job has been run for it")


FINAL = {"kind": Kind.FINAL, "label": None, "of_grade_id": "g0", "job_id": "regraded"}
DECLARED = {"kind": Kind.DECLARED, "label": None, "outcome": Outcome.JUDGE_FAULT, "reason": "budget: too small"}
WITHDRAWN = DECLARED | {"reason": "withdrawn: it was right"}
SUSPECT = {"suspect": "too fast"}
G0, G1 = Rulings(frozenset({"g0"})), Rulings(frozenset({"g1"}))


@pytest.mark.parametrize(
    ("made", "mode", "rulings", "expected"),
    [
        pytest.param([{}], "single", G0, "owed infra", id="disqualified"),
        pytest.param([{}, FINAL], "single", G1, "owed infra", id="its-final-verdict-disqualified"),
        pytest.param([SUSPECT], "single", G0, "owed infra", id="suspect-and-disqualified"),
        pytest.param([SUSPECT], "single", Rulings(accepted=G0.disqualified), "delivered", id="suspect-and-accepted"),
        pytest.param(
            [{}, FINAL | SUSPECT], "single", Rulings(accepted=G1.disqualified), "delivered", id="final-accepted"
        ),
        pytest.param([{}, FINAL | WRONG], "single", Rulings(), "delivered", id="final-finds-it-wrong-on-the-same-task"),
        pytest.param([OLD, FINAL | WRONG], "single", Rulings(), "owed task", id="final-finds-it-wrong-on-a-new-task"),
        pytest.param([WRONG | OLD, FINAL], "single", Rulings(), "delivered", id="final-finds-it-right"),
        pytest.param([{}, FINAL | FAULT], "single", Rulings(), "delivered", id="a-faulty-final-says-nothing"),
        pytest.param([{}, SUSPECT], "multi", Rulings(), "delivered", id="a-suspect-one-leaves-the-earlier"),
        pytest.param([{}, FAULT], "multi", Rulings(), "delivered", id="a-fault-leaves-the-earlier"),
        pytest.param([{}, FAULT | {"reason": "budget: x"}], "multi", G0, "owed budget", id="the-last-submit-is-blamed"),
        pytest.param([{}, DECLARED], "single", Rulings(), "owed budget", id="declared"),
        pytest.param([DECLARED, {}], "single", Rulings(), "delivered", id="answered-after-it-was-declared"),
        pytest.param([{}, DECLARED, WITHDRAWN], "single", Rulings(), "delivered", id="declared-and-withdrawn"),
        pytest.param([{}, DECLARED], "single", G1, "delivered", id="the-declaration-disqualified"),
        pytest.param([{}, WITHDRAWN, DECLARED], "single", Rulings(), "owed budget", id="declared-once-more"),
    ],
)
def test_what_a_ruling_changes(made: list[dict[str, Any]], mode: str, rulings: Rulings, expected: str) -> None:
    history = History([episode(0, 0)])
    for number, one in enumerate(made):
        found = grade(number, number + 1, **({"job_id": "0"} | one))
        (history.finals.setdefault("g0", []) if found.kind is Kind.FINAL else history.grades).append(found)
    result = standing(history, SubmissionMode(mode), CURRENT, rulings)
    assert " ".join(filter(None, (result.part, result.owed))) == expected
