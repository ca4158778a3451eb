"""Speedup against tokens: what each request had cost and what was the best by then, in queries and on the console."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from results_rows import LABEL, SETUPS, episode, origin, report

from bench.cli import run
from bench.errors import UsageError
from bench.judge.schemas import Kind, Outcome
from bench.results.merge import merge
from bench.results.queries import Assignment, opened
from bench.results.shard import Shard
from bench.results.trajectories import trajectories

OTHER = "demo-noop-c.n0.p1.w0.s3"
# Kind, outcome, score, tokens so far, suspect → the best so far.
REQUESTS: list[tuple[Kind, Outcome, float | None, int | None, str | None, float | None]] = [
    (Kind.SCORE, Outcome.WRONG, None, 1100, None, None),
    (Kind.SCORE, Outcome.SOLVED, 1.5, 2200, None, 1.5),
    (Kind.SCORE, Outcome.SOLVED, 90.0, 2900, "faster than memory", 1.5),
    (Kind.SCORE, Outcome.JUDGE_FAULT, None, 3000, None, 1.5),
    (Kind.SCORE, Outcome.SOLVED, 1.2, 3300, None, 1.5),
    (Kind.REGRADE, Outcome.SOLVED, 7.0, None, None, None),
    (Kind.SUBMIT, Outcome.SOLVED, 2.5, 4400, None, 2.5),
]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A merged database: one episode with all these requests, and one whose only grade nobody counted tokens for."""
    with Shard.open(tmp_path / "rank-0.db", "7", 0, SETUPS) as shard:
        for number, (kind, outcome, score, tokens, suspect, _) in enumerate(REQUESTS):
            asked = {"kind": kind, "tokens_spent": tokens, "requested_at": f"2026-01-01T00:00:{number:02}.000+00:00"}
            found: dict[str, Any] = {"outcome": outcome, "score": score, "raw_ratio": score, "suspect": suspect}
            shard.record(origin(**asked), report(f"g{number}", **found))
        shard.record(origin(OTHER), report("alone", OTHER))
        shard.record(origin(OTHER, kernel="gelu"), report("of-another-kernel", OTHER))
    record = episode(tokens_fresh=4000, tokens_output=400, dollars=0.018, prices="v1", score_calls=5, outcome="solved")
    merge(tmp_path / "results.db", [tmp_path / "rank-0.db"], [record, episode(OTHER)])
    return tmp_path / "results.db"


def test_each_request_has_what_was_spent_and_what_was_best(results: Path) -> None:
    with opened([results]) as db:
        first, other = trajectories(db)
    assert (first.job_id, first.label, first.assignment) == ("7", LABEL, Assignment("demo-gold-c", "axpy", 0))
    assert (first.tokens, first.dollars) == (4400, 0.018)
    expected = [row for row in REQUESTS if row[0] is not Kind.REGRADE]
    assert [(p.kind, p.outcome, p.score, p.tokens, p.suspect, p.best) for p in first.points] == expected
    assert (other.assignment.slot, other.tokens, other.dollars) == (3, None, None)
    assert [(point.grade_id, point.tokens, point.best) for point in other.points] == [("alone", None, 1.5)]


def test_a_live_shard_has_them_before_any_record_is_there(results: Path) -> None:
    with opened([results.with_name("rank-0.db")]) as db:
        first, _ = trajectories(db)
    assert (first.label, first.tokens, len(first.points)) == (LABEL, None, 6)


def test_they_are_printed_as_a_table_as_csv_and_as_json(kcourt: Callable[..., Any], results: Path) -> None:
    table, text, found = (kcourt("db", "trajectories", str(results), *form) for form in ((), ("--csv",), ("--json",)))
    assert (table.code, text.code, found.code) == (0, 0, 0), table.err + text.err + found.err
    rows = [*csv.DictReader(io.StringIO(text.out))]
    assert [(row["tokens"], row["best"]) for row in rows if row["label"] == LABEL][-2:] == [
        ("3300", "1.5"),
        ("4400", "2.5"),
    ]
    first = json.loads(found.out)["trajectories"][0]
    assert (first["assignment"]["kernel"], first["tokens"], len(first["points"])) == ("axpy", 4400, 6)
    assert set(first["points"][0]) < set(rows[0])
    assert "faster than memory" in table.out


def test_one_form_at_a_time(results: Path) -> None:
    with pytest.raises(UsageError, match="--json and --csv: choose one"):
        run(["db", "trajectories", str(results), "--json", "--csv"])


def test_an_episode_keeps_what_it_cost_and_asked(results: Path) -> None:
    with opened([results]) as db:
        row = db.exec_driver_sql(
            "SELECT episode_outcome, dollars, prices, score_calls, submit_calls FROM grades_flat WHERE grade_id = 'g0'"
        ).one()
    assert tuple(row) == ("solved", 0.018, "v1", 5, None)
