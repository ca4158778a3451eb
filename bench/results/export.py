"""Writes what databases hold to files that other programs read: grades, episodes or the final table."""

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, count, islice
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic_core import to_json
from sqlalchemy import ColumnElement, Connection, FromClause, select

from bench.errors import EnvironmentFault, UsageError
from bench.results.merge import keep_places
from bench.results.models import Episode, GradeSource, grades_flat, table_of
from bench.results.queries import HEAVY, TableRow, opened, table

_BATCH_ROWS = 10_000


class Form(StrEnum):
    """What a file is written as."""

    CSV = "csv"
    PARQUET = "parquet"
    JSON = "json"


class What(StrEnum):
    """Which rows: every grade, the answer that counts for each kernel, or every episode."""

    GRADES = "grades"
    TABLE = "table"
    EPISODES = "episodes"


@dataclass(frozen=True)
class Extract:
    """Rows in the order of `columns`, which says of each whether it is a str, int, float or bool."""

    columns: Mapping[str, type]
    rows: Iterable[Sequence[Any]]


def export(databases: Sequence[Path], out: Path, form: Form, what: What) -> int:
    """Write the rows of databases, read as one, to a file; how many there are. A reader never sees a part.

    Raises:
        UsageError: the file cannot be written, or is one of the databases.
        EnvironmentFault: what the form needs is not installed.
        ShardError: as `queries.opened`.
    """
    if out.resolve() in {path.resolve() for path in databases}:
        raise UsageError(f"--out: {out} is one of the databases; name another file")
    numbers = count()
    partial = out.with_name(f".{out.name}.partial")
    try:
        with opened(databases, also=[GradeSource]) as db:
            if len(databases) > 1:  # read into memory, where episodes without a record have no place yet
                keep_places(db, "several databases read as one")
            found = _EXTRACTS[what](db)
            counted = (row for row, _ in zip(found.rows, numbers, strict=False))
            _WRITERS[form](partial, Extract(found.columns, counted))
        partial.replace(out)
    except OSError as error:
        raise UsageError(f"--out: {out} cannot be written ({error.strerror}); check its folder and disk") from error
    finally:
        partial.unlink(missing_ok=True)
    return next(numbers)


def table_row(row: TableRow) -> dict[str, Any]:
    """One line of the final table; `interval` is a pair, or None."""
    verdict = row.verdict
    flagged = row.review or verdict
    return {
        **row.assignment._asdict(),
        "outcome": verdict.outcome if verdict else None,
        "preset": verdict.preset if verdict else None,
        "end": row.end,
        "score": verdict.score if verdict else None,
        "interval": verdict.interval if verdict else None,
        "faster": verdict.faster if verdict else None,
        "suspect": flagged.suspect if flagged else None,
        "review": row.review.grade_id if row.review else None,
        "protocol": verdict.protocol if verdict else None,
        "grade_id": verdict.grade_id if verdict else None,
        "of_grade_id": verdict.of_grade_id if verdict else None,
        "grades": row.grades,
        "seconds": row.seconds,
    }


# What rows are exported


_TABLE_COLUMNS: dict[str, type] = {
    **dict.fromkeys(("setup", "kernel"), str),
    "slot": int,
    **dict.fromkeys(("outcome", "preset", "end"), str),
    **dict.fromkeys(("score", "interval_lo", "interval_hi"), float),
    "faster": bool,
    **dict.fromkeys(("suspect", "review", "protocol", "grade_id", "of_grade_id"), str),
    "grades": int,
    "seconds": float,
}


def _table(db: Connection) -> Extract:
    rows = []
    for row in table(db):
        facts = table_row(row)
        facts["interval_lo"], facts["interval_hi"] = facts["interval"] or (None, None)
        rows.append([facts[name] for name in _TABLE_COLUMNS])
    return Extract(_TABLE_COLUMNS, rows)


def _grades(db: Connection) -> Extract:
    """The view `grades_flat`, but for the JSON texts, which are not there where databases are read as one."""
    flat = grades_flat()
    return _selected(db, flat, ("grade_id",), leave_out=HEAVY)


def _episodes(db: Connection) -> Extract:
    return _selected(db, table_of(Episode), ("job_id", "label"))


def _selected(db: Connection, of: FromClause, keys: Sequence[str], leave_out: Iterable[str] = ()) -> Extract:
    shown = [column for column in of.columns if column.name not in set(leave_out)]
    rows = db.execute(select(*shown).order_by(*(of.columns[key] for key in keys)))
    return Extract({column.name: _type(column) for column in shown}, rows)


def _type(column: ColumnElement[Any]) -> type:
    """A word of a closed set is text."""
    python_type = column.type.python_type
    return str if issubclass(python_type, str) else python_type


_EXTRACTS: dict[What, Callable[[Connection], Extract]] = {
    What.GRADES: _grades,
    What.TABLE: _table,
    What.EPISODES: _episodes,
}


# What they are written as


def _csv(path: Path, extract: Extract) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(chain([extract.columns], extract.rows))


def _json(path: Path, extract: Extract) -> None:
    """One array with an object a row; what is no number is null."""
    with path.open("wb") as file:
        before = b"[\n"
        for row in extract.rows:
            file.write(before + to_json(dict(zip(extract.columns, row, strict=True)), inf_nan_mode="null"))
            before = b",\n"
        file.write(b"\n]\n" if before == b",\n" else b"[]\n")


def _parquet(path: Path, extract: Extract) -> None:
    arrow, parquet = _arrow()
    arrow_types = {str: arrow.string(), int: arrow.int64(), float: arrow.float64(), bool: arrow.bool_()}
    schema = arrow.schema([(name, arrow_types[kind]) for name, kind in extract.columns.items()])
    left = iter(extract.rows)
    with parquet.ParquetWriter(path, schema) as file:
        while rows := list(islice(left, _BATCH_ROWS)):
            values = map(list, zip(*rows, strict=True))
            columns = [arrow.array(column, field.type) for column, field in zip(values, schema, strict=True)]
            file.write_batch(arrow.record_batch(columns, schema=schema))


def _arrow() -> tuple[ModuleType, ModuleType]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        advice = "pip install 'kernelcourt[parquet]', or export csv or json"
        raise EnvironmentFault(f"parquet needs the package 'pyarrow'; {advice}") from error
    return pyarrow, parquet


_WRITERS: dict[Form, Callable[[Path, Extract], None]] = {Form.CSV: _csv, Form.JSON: _json, Form.PARQUET: _parquet}
