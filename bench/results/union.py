"""Take the rows of one database into another by their natural keys, and refuse what contradicts."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Table

from bench.errors import ShardError
from bench.results.database import naming, uri
from bench.results.models import Base, Episode, Setup, table_of

_SHOWN_CHARS = 40


@contextlib.contextmanager
def attached(connection: Connection, path: Path) -> Iterator[None]:
    """Attach a database as `input` for one transaction, which sees it in one state; commit and detach after.

    The engine must leave transactions to its caller. After an error the connection is of no further use.
    """
    with naming(f"taking {path}"):
        connection.exec_driver_sql("ATTACH DATABASE ? AS input", (uri(path, "ro"),))
        connection.exec_driver_sql("BEGIN")
        yield
        connection.commit()
        connection.exec_driver_sql("DETACH DATABASE input")


def take(
    connection: Connection, path: Path, models: Sequence[type[Base]], blank: Mapping[str, str] | None = None
) -> None:
    """Copy the rows of the attached database's tables that are not here yet; SQLite streams them.

    Places kept for episodes without a record are left behind: they follow from the grades. `blank` names
    columns that are not compared and get a fixed text instead of their content.

    Raises:
        ShardError: two rows of one natural key differ; names the file, the row and its columns.
    """
    for table in map(table_of, models):
        _refuse_contradiction(connection, path, table, set(blank or ()))
        connection.exec_driver_sql(_insert_sql(table, blank or {}))


def contradiction(path: Path, table: Table, old: Mapping[str, Any], new: Mapping[str, Any]) -> ShardError:
    """The error that names a row of `path` which is known with other content, and where the two differ."""
    key = ", ".join(f"{name} '{new[name]}'" for name in _keys(table))
    different = "; ".join(
        f"{name} is {_shown(new[name])}, elsewhere {_shown(old[name])}" for name in new if old[name] != new[name]
    )
    advice = "rename one of the two" if table.name == Setup.__tablename__ else "leave out the file that is wrong"
    return ShardError(f"{path}: {table.name}: {key} has two definitions ({different}); {advice}")


def _insert_sql(table: Table, blank: Mapping[str, str]) -> str:
    names = [column.name for column in table.columns]
    values = ", ".join(f"'{blank[name]}'" if name in blank else f'"{name}"' for name in names)
    return (
        f"INSERT INTO main.{table.name} ({_listed(names)}) SELECT {values} FROM input.{table.name}"
        f" WHERE {_taken(table)} ON CONFLICT ({_listed(_keys(table))}) DO NOTHING"
    )


def _refuse_contradiction(connection: Connection, path: Path, table: Table, ignored: set[str]) -> None:
    keys = _keys(table)
    compared = [c.name for c in table.columns if c.name not in {*keys, *ignored}]
    same_row = " AND ".join(f'here."{key}" = there."{key}"' for key in keys)
    shown = [*keys, *compared]
    found = connection.exec_driver_sql(
        f"SELECT {_listed(shown, 'here')}, {_listed(shown, 'there')}"
        f" FROM (SELECT * FROM input.{table.name} WHERE {_taken(table)}) there"
        f" JOIN main.{table.name} here ON {same_row}"
        f" WHERE ({_listed(compared, 'here')}) IS NOT ({_listed(compared, 'there')}) LIMIT 1"
    ).first()
    if found:
        old, new = (dict(zip(shown, half, strict=True)) for half in (found[: len(shown)], found[len(shown) :]))
        raise contradiction(path, table, old, new)


def _taken(table: Table) -> str:
    return '"end" IS NOT NULL' if table.name == Episode.__tablename__ else "true"


def _keys(table: Table) -> list[str]:
    return [column.name for column in table.primary_key]


def _listed(names: Sequence[str], table: str = "") -> str:
    return ", ".join(f'{table}."{name}"' if table else f'"{name}"' for name in names)


def _shown(value: Any) -> str:
    text = repr(getattr(value, "value", value))
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
