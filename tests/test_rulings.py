"""Which answer counts when operators rule on grades, declare work owed, or have answers graded again."""

import os
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from results_rows import LABEL, episode, origin, report, submitted
from sqlalchemy import insert

from bench.errors import ShardError, UsageError
from bench.judge.schemas import Kind, Outcome, SetupRecord, SubmissionMode
from bench.results import answers, queries
from bench.results.database import Identity, connected
from bench.results.merge import merge
from bench.results.models import DatabaseKind, Disqualification, Grade, Ruling, Setup, create_schema
from bench.results.rows import grade_row
from bench.results.rulings import rule
from bench.results.shard import Shard

LATER = "demo-gold-c.n1.p0.w3"
SUSPECT, FAULT, WRONG = {"suspect": "too fast"}, {"outcome": Outcome.JUDGE_FAULT}, {"outcome": Outcome.WRONG}
RERUN: dict[str, Any] = {"label": LATER}
FINAL: dict[str, Any] = {"kind": Kind.FINAL, "of_grade_id": "g0", "label": None}
OWED: dict[str, Any] = {"kind": Kind.DECLARED, "outcome": Outcome.JUDGE_FAULT, "reason": "infra: the node died"}
OUT, IN, BACK = Ruling.DISQUALIFIED, Ruling.ACCEPTED, Ruling.WITHDRAWN
Ruled = list[tuple[str, Ruling]]


def ruled_on(path: Path, rulings: Ruled) -> Path:
    """A merged database after these rulings; a withdrawal takes back the one before it."""
    before: dict[str, Ruling] = {}
    for grade_id, ruling in rulings:
        back = ruling is BACK
        rule(path, grade_id, before[grade_id] if back else ruling, "me", "because", withdraw=back)
        before[grade_id] = ruling
    return path


CASES: dict[str, tuple[str, list[dict[str, Any]], Ruled, str | None, str | None]] = {
    # mode, grades, rulings → the grade that counts, the grade under review
    "suspect": ("single", [SUSPECT], [], None, "g0"),
    "suspect-accepted": ("single", [SUSPECT], [("g0", IN)], "g0", None),
    "acceptance-withdrawn": ("single", [SUSPECT], [("g0", IN), ("g0", BACK)], None, "g0"),
    "suspect-disqualified": ("single", [SUSPECT], [("g0", OUT)], None, None),
    "disqualified": ("single", [{}], [("g0", OUT)], None, None),
    "disqualification-withdrawn": ("single", [{}], [("g0", OUT), ("g0", BACK)], "g0", None),
    "disqualified-twice": ("single", [{}], [("g0", OUT), ("g0", BACK), ("g0", OUT)], None, None),
    "rerun": ("single", [{}, RERUN | WRONG], [], "g1", None),
    "rerun-without-an-answer": ("single", [{}, RERUN | {"kind": Kind.SCORE}], [], "g0", None),
    "rerun-suspect": ("single", [{}, RERUN | SUSPECT], [], "g0", "g1"),
    "rerun-accepted": ("single", [{}, RERUN | SUSPECT], [("g1", IN)], "g1", None),
    "rerun-disqualified": ("single", [{}, RERUN], [("g1", OUT)], "g0", None),
    "rerun-lost-with-its-node": ("single", [{}, RERUN | WRONG | {"reason": "infra: node lost"}], [], "g0", None),
    "last-of-multi-disqualified": ("multi", [{}, {}], [("g1", OUT)], "g0", None),
    "first-of-single-disqualified": ("single", [{}, {}], [("g0", OUT)], None, None),
    "final": ("single", [{}, FINAL | WRONG], [], "g1", None),
    "newest-final": ("single", [{}, FINAL | WRONG, FINAL], [], "g2", None),
    "final-under-a-preview": ("single", [{}, FINAL | {"protocol": "mw2x5"}], [], "g0", None),
    "final-under-no-protocol-of-ours": ("single", [{}, FINAL | {"protocol": "mw9x9"}], [], "g0", None),
    "final-failed-by-the-judge": ("single", [{}, FINAL | FAULT], [], "g0", None),
    "final-suspect": ("single", [{}, FINAL | SUSPECT], [], "g0", "g1"),
    "final-disqualified": ("single", [{}, FINAL], [("g1", OUT)], "g0", None),
    "final-of-a-suspect": ("single", [SUSPECT, FINAL], [], "g1", None),
    "final-of-a-disqualified": ("single", [{}, FINAL], [("g0", OUT)], None, None),
    "final-does-not-make-an-old-answer-newer": ("single", [{}, RERUN, FINAL], [], "g1", None),
    "declared-owed": ("single", [{}, OWED], [], None, None),
    "declared-owed-and-delivered-again": ("single", [{}, OWED, RERUN], [], "g2", None),
    "declared-owed-by-mistake": ("single", [{}, OWED], [("g1", OUT)], "g0", None),
    "declared-owed-after-a-final": ("single", [{}, FINAL, OWED | {"reason": "task: changed"}], [], None, None),
    "declared-owed-and-withdrawn": ("single", [{}, OWED, OWED | {"reason": "withdrawn: a mistake"}], [], "g0", None),
    "declared-for-no-class": ("single", [{}, OWED | {"reason": "tired"}], [], "g0", None),
    "declared-for-another-slot": ("single", [{}, OWED | {"slot": 1}], [], "g0", None),
}


@pytest.mark.parametrize("case", CASES)
def test_the_answer_that_counts(tmp_path: Path, case: str) -> None:
    mode, grades, rulings, counts, review = CASES[case]
    shard = submitted(tmp_path / "rank-0.db", grades, mode=mode)
    merge(tmp_path / "results.db", [shard], [episode()])
    ruled_on(tmp_path / "results.db", rulings)
    for paths in ([tmp_path / "results.db"], [tmp_path / "results.db", shard]):
        with queries.opened(paths) as db:
            row = next(row for row in queries.table(db) if row.assignment.slot == 0)
            found = [one.grade_id for one in queries.verdicts(db)]
        assert found == ([counts] if counts else [])
        assert (row.verdict.grade_id if row.verdict else None) == counts
        assert (row.review.grade_id if row.review else None) == review


def test_a_final_grade_says_what_was_found_and_the_answer_whose_it_is(tmp_path: Path) -> None:
    merge(tmp_path / "results.db", [submitted(tmp_path / "rank-0.db", [{"attempt": 2}, FINAL | WRONG])])
    with queries.opened([tmp_path / "results.db"]) as db:
        (found,) = queries.verdicts(db)
    assert (found.grade_id, found.of_grade_id, found.outcome) == ("g1", "g0", Outcome.WRONG)
    assert (found.label, found.attempt, found.kind, found.requested_at[17:19]) == (LABEL, 2, Kind.SUBMIT, "00")


# Any history, against a model that is slow and plain


@dataclass(frozen=True)
class Event:
    """A grade of one of three episodes; its place in the history is its time and its id."""

    episode: int
    kind: Kind
    outcome: Outcome
    suspect: bool
    reason: str | None
    attempt: int
    of: int
    protocol: str
    rulings: tuple[Ruling, ...]


LABELS = ("demo-gold-c.n0.p0.w0", "demo-gold-c.n0.p1.w0", "demo-gold-c.n0.p2.w0.s1")
SLOTS = (0, 0, 1)
EVENTS = st.builds(
    Event,
    episode=st.integers(0, 2),
    kind=st.sampled_from(Kind) | st.sampled_from((Kind.SUBMIT, Kind.FINAL)),
    outcome=st.sampled_from((Outcome.SOLVED, Outcome.SOLVED, Outcome.WRONG, Outcome.JUDGE_FAULT)),
    suspect=st.booleans(),
    reason=st.sampled_from((None, None, "infra: lost", "task: changed", "other")),
    attempt=st.sampled_from((1, 1, 2)),
    of=st.integers(0, 7),
    protocol=st.sampled_from(("mw4x5", "mw4x5", "mw2x5")),
    rulings=st.lists(st.sampled_from(Ruling), max_size=2).map(tuple),
)


def modelled(history: list[Event], mode: SubmissionMode, slot: int, though_suspect: bool = False) -> int | None:
    """Of all pairs of an answer and a grade of it that hold, the newest by the answer and then by the grade."""
    numbered = list(enumerate(history))
    stands = [next((r for r in event.rulings[-1:] if r is not BACK), None) for event in history]
    owed = [event.reason is not None and event.reason[:6] in ("infra:", "task: ") for event in history]
    words = [n for n, e in numbered if e.kind is Kind.DECLARED and SLOTS[e.episode] == slot and stands[n] is not OUT]
    declared = [n for n in words[-1:] if owed[n]]  # the last word counts: it may be a withdrawal

    def answers_its_episode(number: int, event: Event) -> bool:
        last = max(other.attempt for other in history if other.episode == event.episode)
        of_answers = event.kind in (Kind.SUBMIT, Kind.PROMOTED, Kind.HARVESTED)
        return of_answers and event.outcome is not Outcome.JUDGE_FAULT and event.attempt == last

    def holds(number: int, event: Event) -> bool:
        excused = owed[number] and event.outcome is not Outcome.SOLVED
        pending = event.suspect and stands[number] is not IN
        return stands[number] is not OUT and not excused and (though_suspect or not pending)

    pairs = []
    for number, answer in numbered:
        first = not any(answers_its_episode(n, e) for n, e in numbered[:number] if e.episode == answer.episode)
        if SLOTS[answer.episode] != slot or not answers_its_episode(number, answer) or stands[number] is OUT:
            continue
        if not first and mode is not SubmissionMode.MULTI:
            continue
        if any(n > number for n in declared):
            continue
        pairs += [(number, -1, number)] if holds(number, answer) else []
        for n, final in numbered:
            of_this = final.kind is Kind.FINAL and final.of == number and final.protocol == "mw4x5"
            if of_this and final.outcome is not Outcome.JUDGE_FAULT and holds(n, final):
                pairs.append((number, n, n))
    return max(pairs)[2] if pairs else None


@settings(max_examples=100)
@given(history=st.lists(EVENTS, min_size=1, max_size=8), mode=st.sampled_from(SubmissionMode))
def test_any_history_is_answered_as_a_plain_model_says(history: list[Event], mode: SubmissionMode) -> None:
    with connected(None, "rwc") as db:
        create_schema(db)
        db.execute(insert(Setup), SetupRecord(setup="demo-gold-c", submission_mode=mode).model_dump())
        for number, event in enumerate(history):
            label = LABELS[event.episode]
            asked = {"requested_at": f"2026-01-0{number + 1}", "attempt": event.attempt, "reason": event.reason}
            found = {"outcome": event.outcome, "protocol": event.protocol, "suspect": "?" if event.suspect else None}
            row = grade_row(
                Identity(DatabaseKind.SHARD, "7", 0),
                origin(label, event.kind, of_grade_id=f"{event.of}", **asked),
                report(f"{number}", label, **found),
            )
            db.execute(insert(Grade), row)
            for turn, ruling in enumerate(event.rulings):
                ruled = {"grade_id": f"{number}", "at": f"2026-02-0{turn + 1}", "ruling": ruling, "by": "me"}
                db.execute(insert(Disqualification), ruled)
        docket = queries.docket(db)
        found_by_slot = {one.assignment.slot: int(one.grade_id) for one in answers.verdicts(docket)}
        open_by_slot = {one.assignment.slot: int(one.grade_id) for one in answers.reviews(docket)}
    for slot in (0, 1):
        assert found_by_slot.get(slot) == modelled(history, mode, slot)
        review = modelled(history, mode, slot, though_suspect=True)
        open_one = review is not None and history[review].suspect and history[review].rulings[-1:] != (IN,)
        assert open_by_slot.get(slot) == (review if open_one else None)


# What an operator is told


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A merged database: g0 is solved, g1 is suspect."""
    merge(tmp_path / "results.db", [submitted(tmp_path / "rank-0.db", [{}, RERUN | SUSPECT])], [episode()])
    return tmp_path / "results.db"


def rows(path: Path) -> list[tuple[Any, ...]]:
    with sqlite3.connect(path) as connection:
        return connection.execute("SELECT grade_id, ruling, why FROM disqualifications ORDER BY at").fetchall()


Kcourt = Callable[..., Any]


def test_rulings_are_made_and_withdrawn_and_nothing_is_edited_away(results: Path, kcourt: Kcourt) -> None:
    def answer() -> str | None:
        (row,) = kcourt("db", "summary", "results.db", "--json").json["table"]
        return row["grade_id"] and f"{row['grade_id']} {row['review']}"

    on = ("--db", "results.db", "--why", "because")
    assert answer() == "g0 g1"
    assert "g1 is accepted" in kcourt("accept", "g1", *on).out
    assert answer() == "g1 None"
    assert "g1 is no longer accepted" in kcourt("accept", "g1", "--db", "results.db", "--withdraw").out
    told = kcourt("disqualify", "g0", *on, "--json").json
    assert (told["grade_id"], told["ruling"], told["why"]) == ("g0", "disqualified", "because")
    assert answer() is None
    assert rows(results) == [
        ("g1", "accepted", "because"),
        ("g1", "withdrawn", None),
        ("g0", "disqualified", "because"),
    ]
    with sqlite3.connect(results) as connection:
        flat = connection.execute("SELECT grade_id, ruling, ruling_why FROM grades_flat ORDER BY grade_id").fetchall()
    assert flat == [("g0", "disqualified", "because"), ("g1", "withdrawn", None)]


ON, WHY = ("--db", "results.db"), ("--why", "no")
REFUSED: dict[str, tuple[tuple[str, ...], int, str]] = {
    "unknown-grade": (("disqualify", "g9", *ON, *WHY), 2, "no grade 'g9'; `kcourt db summary results.db --json` lists"),
    "twice": (("disqualify", "gone", *ON, *WHY), 2, "was disqualified by .* (because); `kcourt disqualify --withdraw`"),
    "accepted-though-disqualified": (("accept", "gone", *ON, *WHY), 2, "was disqualified by"),
    "accepted-though-clean": (("accept", "g0", *ON, *WHY), 2, "is not suspect: it counts without"),
    "nothing-to-withdraw": (("disqualify", "g0", *ON, "--withdraw"), 2, "is not disqualified; there is nothing"),
    "the-other-ruling-withdrawn": (("accept", "gone", *ON, "--withdraw"), 2, "was disqualified by"),
    "no-reason": (("disqualify", "g0", *ON), 2, "--why is missing: a ruling needs its reason"),
    "blank-reason": (("disqualify", "g0", *ON, "--why", " "), 2, "--why is missing"),
    "shard": (("disqualify", "g0", "--db", "rank-0.db", *WHY), 75, "the shard of job 7 rank 0, which only its judge"),
    "no-database": (("disqualify", "g0", "--db", "none.db", *WHY), 75, "none.db: unable to open"),
    "folder": (("disqualify", "g0", "--db", ".", *WHY), 75, "a folder; name a database in it"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_ruled_is_said_in_words(tmp_path: Path, kcourt: Kcourt, case: str) -> None:
    arguments, code, message = REFUSED[case]
    shard = submitted(tmp_path / "rank-0.db", [{}, RERUN | SUSPECT | {"name": "gone"}])
    merge(tmp_path / "results.db", [shard])
    rule(tmp_path / "results.db", "gone", OUT, "me", "because")
    before = rows(tmp_path / "results.db")
    done = kcourt(*arguments)
    assert (done.code, done.out) == (code, "")
    for part in message.split(" .* "):
        assert part in done.err
    assert rows(tmp_path / "results.db") == before
    assert not list(tmp_path.glob("*.lock"))


def test_a_live_shard_is_refused_at_once(tmp_path: Path, kcourt: Kcourt) -> None:
    with Shard.open(tmp_path / "rank-0.db", "7", 0):
        done = kcourt("disqualify", "g0", "--db", "rank-0.db", *WHY)
    assert done.code == 75 and "which only its judge writes" in done.err


def test_of_two_operators_at_once_one_rules_and_the_other_is_told(results: Path) -> None:
    together = Barrier(6)

    def operate(name: str) -> str:
        together.wait()
        try:
            rule(results, "g1", OUT if name < "d" else IN, name, "because")
        except UsageError as error:
            return str(error)
        return name

    with ThreadPoolExecutor(6) as operators:
        said = list(operators.map(operate, "abcdef"))
    (first,) = (name for name in said if len(name) == 1)
    assert sum(f"by {first} at" in told for told in said) == 5
    assert len(rows(results)) == 1


def test_rulings_and_merges_at_once_lose_nothing(results: Path) -> None:
    def work(turn: int) -> None:
        if turn % 2:
            merge(results, [results.with_name("rank-0.db")])
        else:
            rule(results, "g0", OUT, "me", f"{turn}", withdraw=bool(turn % 4))

    with ThreadPoolExecutor(2) as both:
        merges = [both.submit(work, turn) for turn in (1, 3, 5)]
        for turn in (0, 2, 4, 6, 8):
            work(turn)
        for done in merges:
            done.result()
    assert [why for _, _, why in rows(results)] == ["0", "2", "4", "6", "8"]


def test_copies_that_were_ruled_on_apart_keep_what_both_said(results: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    merge(copy, [results])
    rule(results, "g1", OUT, "one", "because")
    rule(copy, "g1", IN, "other", "because")
    merge(tmp_path / "all.db", [copy, results])
    assert [ruling for _, ruling, _ in rows(tmp_path / "all.db")] == ["disqualified", "accepted"]


def test_a_ruling_follows_the_last_one_though_the_clock_is_behind(results: Path) -> None:
    with sqlite3.connect(results) as connection:
        connection.execute(
            "INSERT INTO disqualifications VALUES ('g0', '2999-01-01T00:00:00.000000+00:00', 'disqualified', 'x', 'me')"
        )
    rule(results, "g0", OUT, "me", None, withdraw=True)
    with queries.opened([results]) as db:
        assert [one.grade_id for one in queries.verdicts(db)] == ["g0"]


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """The folder's file system takes no writes: mounted so for root, whom no permission keeps from writing."""
    if os.getuid():
        folder.chmod(0o555)
        yield
        folder.chmod(0o755)
        return
    if subprocess.run(["mount", "--bind", folder, folder], capture_output=True).returncode:
        pytest.skip("a folder cannot be mounted read-only here, and nothing else keeps root from writing to it")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def test_a_read_only_file_system_is_read_and_named_when_it_should_be_written(tmp_path: Path, kcourt: Kcourt) -> None:
    folder = tmp_path / "archive"
    folder.mkdir()
    merge(folder / "results.db", [submitted(folder / "rank-0.db", [{}])])
    with read_only(folder):
        told = kcourt("db", "summary", "archive/results.db", "--json")
        refused = kcourt("disqualify", "g0", "--db", "archive/results.db", *WHY)
        elsewhere = kcourt("db", "merge", "all.db", "archive/results.db", "archive/rank-0.db")
    assert (told.code, told.json["table"][0]["grade_id"]) == (0, "g0")
    assert refused.code == 75 and "archive/results.db.lock: " in refused.err
    assert "make the folder exist and writable" in refused.err
    assert elsewhere.code == 0, elsewhere.err
    assert rows(folder / "results.db") == []


def test_a_damaged_database_is_named(results: Path) -> None:
    os.truncate(results, results.stat().st_size // 2)
    with pytest.raises(ShardError, match=r"results\.db: .*malformed"):
        rule(results, "g0", OUT, "me", "because")
