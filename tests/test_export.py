"""What databases hold is written to files that other programs read, with the same rows in each form."""

import csv
import json
import math
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from results_rows import LABEL, episode, submitted

from bench.judge.schemas import Kind
from bench.results.merge import merge

RERUN = "demo-gold-c.n1.p0.w3"
Kcourt = Callable[..., Any]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A merged database, beside its shard: a preview, a submit with a comma and a newline, and a suspect rerun."""
    odd = {"reason": 'of two lines,\nand a "comma"', "tokens_spent": 7}
    grades: list[dict[str, Any]] = [{"kind": Kind.SCORE}, odd, {"label": RERUN, "suspect": "too fast"}]
    merge(tmp_path / "results.db", [submitted(tmp_path / "rank-0.db", grades)], [episode(tokens_output=321)])
    return tmp_path / "results.db"


def exported(kcourt: Kcourt, folder: Path, form: str, what: str = "grades", *databases: str) -> list[dict[str, Any]]:
    """The rows of an export, of results.db unless others are named; every cell of a CSV file is text."""
    if form == "parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    out = f"out.{form}"
    done = kcourt("db", "export", form, *(databases or ("results.db",)), "--out", out, "--what", what, "--json")
    assert done.code == 0, done.err
    rows = READERS[form](folder / out)
    assert done.json == {"out": out, "format": form, "what": what, "rows": len(rows)}
    return rows


def from_csv(path: Path) -> list[dict[str, Any]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def from_json(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"), parse_constant=pytest.fail)
    return rows


def from_parquet(path: Path) -> list[dict[str, Any]]:
    from pyarrow import parquet

    rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    return rows


READERS = {"csv": from_csv, "json": from_json, "parquet": from_parquet}


@pytest.mark.parametrize("form", READERS)
def test_every_form_has_the_grades_as_they_are(results: Path, kcourt: Kcourt, form: str) -> None:
    rows = exported(kcourt, results.parent, form)
    with sqlite3.connect(results) as connection:
        wanted = connection.execute("SELECT * FROM grades_flat ORDER BY grade_id")
        columns = [name for name, *_ in wanted.description]
        flat = [dict(zip(columns, row, strict=True)) for row in wanted]
    assert list(rows[0]) == [name for name in columns if name not in ("answer", "provenance", "stages")]
    for row, there in zip(rows, flat, strict=True):
        for name, value in row.items():
            same = text_of(value) == text_of(there[name]) if form == "csv" else value == there[name]
            assert same, (name, value, there[name])


def text_of(value: Any) -> str:
    """A cell without its type: CSV has none, and SQLite stores a bool as a number."""
    return {"True": "1", "False": "0", "None": ""}.get(str(value), str(value))


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_cells_keep_their_types(results: Path, kcourt: Kcourt, form: str) -> None:
    row = exported(kcourt, results.parent, form)[1]
    assert (row["score"], row["slot"], row["faster"], row["outcome"]) == (1.5, 0, True, "solved")
    assert (row["tokens_spent"], row["tokens_output"], row["idempotency_key"], row["ruling"]) == (7, 321, None, None)
    assert type(row["faster"]) is bool and type(row["slot"]) is int


@pytest.mark.parametrize("form", READERS)
def test_the_table_and_the_episodes(results: Path, kcourt: Kcourt, form: str) -> None:
    (row,) = exported(kcourt, results.parent, form, "table")
    assert (row["grade_id"], row["suspect"], row["review"]) == ("g1", "too fast", "g2")
    assert [float(row[name]) for name in ("score", "interval_lo", "interval_hi", "grades")] == [1.5, 1.4, 1.6, 3]
    one, other = exported(kcourt, results.parent, form, "episodes")
    assert [(one["label"], one["end"]), other["label"]] == [(LABEL, "submitted"), RERUN]
    assert float(one["wall_s"]) == 12.5 and not other["wall_s"]


def test_several_databases_give_what_their_merge_gives(results: Path, kcourt: Kcourt) -> None:
    submitted(results.with_name("other.db"), [{"name": "late", "label": RERUN, "requested_at": "2026-03"}], "8")
    kcourt("db", "merge", "all.db", "results.db", "other.db")
    for what in ("grades", "episodes", "table"):
        apart = exported(kcourt, results.parent, "json", what, "other.db", "results.db", "rank-0.db")
        assert apart == exported(kcourt, results.parent, "json", what, "all.db") and len(apart) > 0


def test_no_rows_are_an_empty_file_of_each_form(results: Path, kcourt: Kcourt) -> None:
    submitted(results.with_name("empty.db"), [])
    assert exported(kcourt, results.parent, "json", "grades", "empty.db") == []
    assert exported(kcourt, results.parent, "csv", "grades", "empty.db") == []
    assert results.with_name("out.csv").read_text().startswith("grade_id,job_id,")


def test_what_is_no_number_is_null_in_json(results: Path, kcourt: Kcourt) -> None:
    with sqlite3.connect(results) as connection:
        connection.execute("UPDATE grades SET score = ?", (math.inf,))
    assert [row["score"] for row in exported(kcourt, results.parent, "json")] == [None] * 3


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("csv", "results.db", "--out", "./results.db"), 2, "--out: results.db is one of the databases"),
        (("csv", "results.db", "--out", "none/out.csv"), 2, "none/out.csv cannot be written (No such file"),
        (("csv", "results.db", "--out", "folder"), 2, "folder cannot be written (Is a directory)"),
        (("csv", "none.db", "--out", "out.csv"), 75, "none.db: unable to open"),
        (("xml", "results.db", "--out", "out.csv"), 2, "xml"),
        (("csv", "results.db"), 2, "--out"),
    ],
)
def test_what_cannot_be_exported_is_said_and_nothing_is_written(
    results: Path, kcourt: Kcourt, arguments: tuple[str, ...], code: int, message: str
) -> None:
    before = results.read_bytes()
    results.with_name("folder").mkdir()
    done = kcourt("db", "export", *arguments)
    assert (done.code, done.out) == (code, "")
    assert message in done.err
    assert sorted(path.name for path in results.parent.iterdir()) == ["folder", "rank-0.db", "results.db"]
    assert results.read_bytes() == before


def test_without_pyarrow_it_is_said_what_to_install(
    results: Path, kcourt: Kcourt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    done = kcourt("db", "export", "parquet", "results.db", "--out", "out.parquet")
    assert done.code == 1 and "pip install 'kernelcourt[parquet]', or export csv or json" in done.err
    assert not results.with_name("out.parquet").exists()


def test_an_export_replaces_the_one_before(results: Path, kcourt: Kcourt) -> None:
    results.with_name("out.csv").write_text("of yesterday")
    assert "out.csv: 3 rows of grades as csv" in kcourt("db", "export", "csv", "results.db", "--out", "out.csv").out
    assert len(from_csv(results.with_name("out.csv"))) == 3
