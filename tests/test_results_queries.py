"""What the databases say: which answer counts, how much there is, and that several are read as one."""

import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from results_rows import SETUPS, episode, origin, report, submitted

from bench.errors import ShardError
from bench.judge.schemas import ADHOC, End, Kind, Outcome
from bench.results import queries
from bench.results.merge import merge
from bench.results.queries import Assignment
from bench.results.shard import Shard

OTHER = "demo-gold-c.n1.p0.w3"
GOLD = Assignment("demo-gold-c", "axpy", 0)


SCORE, FAULT, WRONG = {"kind": Kind.SCORE}, {"outcome": Outcome.JUDGE_FAULT}, {"outcome": Outcome.WRONG}


@pytest.mark.parametrize(
    ("mode", "grades", "attempts", "expected"),
    [
        ("single", [SCORE, {}], 1, "g1"),
        ("single", [SCORE], 1, None),
        ("single", [FAULT], 1, None),
        ("single", [FAULT, WRONG], 1, "g1"),
        ("single", [WRONG, {}], 1, "g0"),
        ("blind", [{"kind": Kind.HARVESTED}], 1, "g0"),
        ("multi", [{}, WRONG], 1, "g1"),
        ("multi", [{}, FAULT], 1, "g0"),
        ("multi", [{}, {"kind": Kind.PROMOTED, "attempt": 2}], 2, "g1"),
        ("multi", [{}, SCORE | {"attempt": 2}], None, None),
        ("multi", [{}], 2, None),
        ("multi", [{}, {"kind": Kind.REGRADE}, {"kind": Kind.CALIBRATION}], 1, "g0"),
    ],
    ids=[
        "submit-after-score",
        "score-only",
        "fault-only",
        "fault-then-submit",
        "first-of-single",
        "harvested",
        "last-of-multi",
        "fault-is-no-answer",
        "promoted-in-final-attempt",
        "nothing-in-final-attempt-seen",
        "nothing-in-final-attempt-recorded",
        "audits-count-as-nothing",
    ],
)
def test_the_answer_that_counts(
    tmp_path: Path, mode: str, grades: list[dict[str, Any]], attempts: int | None, expected: str | None
) -> None:
    shard = submitted(tmp_path / "rank-0.db", [dict(grade) for grade in grades], mode=mode)
    records = [] if attempts is None else [episode(attempts=attempts)]
    merge(tmp_path / "results.db", [shard], records)
    with queries.opened([tmp_path / "results.db"]) as db:
        found = {verdict.assignment: verdict.grade_id for verdict in queries.verdicts(db)}
        (row,) = queries.table(db)
    assert found == ({GOLD: expected} if expected else {})
    assert (row.verdict.grade_id if row.verdict else None) == expected
    assert row.grades == len(grades)


@pytest.mark.parametrize("recorded", [True, False], ids=["recorded", "by-its-first-grade"])
def test_a_grade_of_another_kernel_than_its_episodes_counts_as_nothing(tmp_path: Path, recorded: bool) -> None:
    shard = submitted(tmp_path / "rank-0.db", [{}, {"kernel": "gelu"}, {"kernel": "gelu"}], mode="multi")
    merge(tmp_path / "results.db", [shard], [episode()] if recorded else [])
    with queries.opened([tmp_path / "results.db"]) as db:
        assert {verdict.assignment: verdict.grade_id for verdict in queries.verdicts(db)} == {GOLD: "g0"}
        assert [(row.assignment, row.grades) for row in queries.table(db)] == [(GOLD, 1)]
        (line,) = queries.by_setup(db)
    assert (line.grades, line.verdicts, line.solved) == (3, 1, 1)


def test_the_latest_job_answers(tmp_path: Path) -> None:
    early = submitted(tmp_path / "7.db", [{"name": "early"}])
    late = submitted(tmp_path / "8.db", [{"name": "late", "requested_at": "2026-02-01", "label": OTHER}], "8")
    for paths in ([early, late], [late, early]):
        with queries.opened(paths) as db:
            assert [verdict.grade_id for verdict in queries.verdicts(db)] == ["late"]


def test_an_ad_hoc_grade_answers_nothing(tmp_path: Path) -> None:
    with Shard.open(tmp_path / "adhoc.db", ADHOC, 0, SETUPS) as shard:
        shard.record(origin(), report("g1"))
        shard.record(origin(None), report("g2", None))
    with queries.opened([tmp_path / "adhoc.db"]) as db:
        assert queries.verdicts(db) == []
        assert queries.counts(db).grades == 2


def test_counts_and_setups(tmp_path: Path) -> None:
    grades = [SCORE, {}, {"label": OTHER, "suspect": "faster than memory"}, FAULT]
    shard = submitted(tmp_path / "rank-0.db", [dict(grade) for grade in grades])
    with queries.opened([shard]) as db:
        live = queries.counts(db)
    assert (live.episodes, live.unrecorded_episodes) == (2, 2)
    idle = "demo-gold-c.n0.p7.w0.s1"
    merge(tmp_path / "results.db", [shard], [episode(), episode(idle, end=End.START_FAILED)])
    with queries.opened([tmp_path / "results.db"]) as db:
        done, (setup,), rows = queries.counts(db), queries.by_setup(db), queries.table(db)
    assert (done.setups, done.episodes, done.unrecorded_episodes, done.grades) == (1, 3, 1, 4)
    assert done.by_kind == {Kind.SCORE: 1, Kind.SUBMIT: 3}
    assert done.by_outcome == {Outcome.SOLVED: 3, Outcome.JUDGE_FAULT: 1}
    assert (setup.episodes, setup.grades, setup.verdicts, setup.judge_faults) == (3, 4, 1, 1)
    assert (setup.solved, setup.faster, setup.suspect) == (1, 1, 1)
    assert [(row.assignment.slot, row.end, row.seconds) for row in rows] == [
        (0, End.SUBMITTED, 12.5),
        (1, End.START_FAILED, 12.5),
    ]


def test_several_databases_read_as_one_count_each_grade_once(tmp_path: Path) -> None:
    shards = []
    for rank in range(12):
        path = tmp_path / f"rank-{rank}.db"
        with Shard.open(path, "7", rank, SETUPS) as shard:
            shard.record(origin(f"demo-gold-c.n0.p{rank}.w0", kernel=f"k{rank:02}"), report(f"g{rank}"))
        shards.append(path)
    merge(tmp_path / "results.db", shards[:6])
    with queries.opened([*shards, tmp_path / "results.db"]) as db:
        assert queries.counts(db).grades == 12
        assert [row.assignment.kernel for row in queries.table(db)] == [f"k{rank:02}" for rank in range(12)]


def test_two_definitions_of_a_setup_are_refused(tmp_path: Path) -> None:
    one = submitted(tmp_path / "7.db", [])
    other = submitted(tmp_path / "8.db", [], "8", "multi")
    with pytest.raises(ShardError, match=r"8.db.*demo-gold-c.*submission_mode"), queries.opened([one, other]):
        pass


@pytest.mark.parametrize("others", [0, 1], ids=["alone", "among-others"])
def test_a_wrong_database_is_named(tmp_path: Path, others: int) -> None:
    paths = [submitted(tmp_path / "7.db", [])] * others + [tmp_path / "missing.db"]
    with pytest.raises(ShardError, match=r"missing.db: unable to open"), queries.opened(paths):
        pass


def test_grades_flat_joins_what_belongs_together(tmp_path: Path) -> None:
    shard = submitted(tmp_path / "rank-0.db", [{}, {"label": OTHER}])
    merge(tmp_path / "results.db", [shard], [episode(tokens_output=321)])
    with sqlite3.connect(tmp_path / "results.db") as connection:
        connection.row_factory = sqlite3.Row
        flat = [dict(row) for row in connection.execute("SELECT * FROM grades_flat ORDER BY grade_id")]
        (sha256,) = connection.execute(
            "SELECT sha256 FROM sources WHERE CAST(content AS TEXT) LIKE '%// g0'"
        ).fetchone()
    assert flat[0]["submission_sha256"] == sha256
    assert (flat[0]["end"], flat[0]["end_code"], flat[0]["tokens_output"]) == ("submitted", 123, 321)
    assert (flat[0]["submission_mode"], flat[0]["preset"], flat[0]["setup_preset"]) == ("single", "M", "XL")
    assert (flat[1]["label"], flat[1]["end"]) == (OTHER, None)


@pytest.mark.parametrize(
    ("table", "column", "word"),
    [
        ("grades", "outcome", "fast"),
        ("grades", "kind", "other"),
        ("grades", "preset", "XXL"),
        ("grades", "language", "cobol"),
        ("setups", "submission_mode", "often"),
        ("episodes", '"end"', "137"),
    ],
)
def test_the_database_itself_knows_the_closed_words(tmp_path: Path, table: str, column: str, word: str) -> None:
    merge(tmp_path / "results.db", [submitted(tmp_path / "rank-0.db", [{}])], [episode()])
    with sqlite3.connect(tmp_path / "results.db") as connection, pytest.raises(sqlite3.IntegrityError, match="CHECK"):
        connection.execute(f"UPDATE {table} SET {column} = ?", (word,))


Kcourt = Callable[..., Any]


def test_db_merge_check_and_summary(tmp_path: Path, kcourt: Kcourt) -> None:
    submitted(tmp_path / "rank-0.db", [SCORE | {}, {}])
    merged = kcourt("db", "merge", "results.db", "rank-0.db", "--job", "7", "--ranks", "1", "--json")
    assert merged.code == 0, merged.err
    assert (merged.json["grades"], merged.json["unrecorded_episodes"]) == (2, 1)
    assert merged.json["inputs"] == [{"database": "rank-0.db", "kind": "shard", "job_id": "7", "rank": 0, "grades": 2}]
    checked = kcourt("db", "check", "results.db", "rank-0.db", "--json").json
    assert [one["kind"] for one in checked["databases"]] == ["results", "shard"]
    told = kcourt("db", "summary", "results.db", "--json").json
    assert told["counts"]["by_outcome"] == {"solved": 2}
    (row,) = told["table"]
    assert (row["kernel"], row["outcome"], row["score"], row["interval"]) == ("axpy", "solved", 1.5, [1.4, 1.6])
    shown = kcourt("db", "summary", "results.db")
    assert "1.40..1.60" in shown.out and "demo-gold-c" in shown.out


def test_db_merge_says_which_shard_is_damaged_and_makes_nothing(tmp_path: Path, kcourt: Kcourt) -> None:
    for rank in (0, 1):
        submitted(tmp_path / f"rank-{rank}.db", [{}])
    torn = tmp_path / "rank-1.db"
    os.truncate(torn, torn.stat().st_size // 2)
    done = kcourt("db", "merge", "results.db", "rank-0.db", "rank-1.db")
    assert (done.code, done.out) == (75, "")
    assert "rank-1.db: " in done.err and "rank-0.db" not in done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rank-0.db", "rank-1.db"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("check", "rank-0.db", "--job", "7", "--ranks", "2"), 75, "no shard of rank 1"),
        (("check", "none.db"), 75, "none.db: no such file"),
        (("merge", "results.db", "none.db"), 75, "none.db: no such file"),
        (("merge", "results.db", "rank-0.db", "--job", "7"), 2, "--job and --ranks go together"),
        (("summary", "none.db"), 75, "none.db"),
    ],
    ids=["rank-missing", "no-file", "nothing-to-merge", "half-an-expectation", "nothing-to-show"],
)
def test_db_refuses_in_words(
    tmp_path: Path, kcourt: Kcourt, arguments: tuple[str, ...], code: int, message: str
) -> None:
    submitted(tmp_path / "rank-0.db", [{}])
    done = kcourt("db", *arguments, "--json")
    assert done.code == code
    assert message in done.err and "Traceback" not in done.err
    assert json.loads(done.out)["error"]["message"] in done.err
