"""Brings a database of an earlier schema up to this version's, as a new file; the old one stays as it is."""

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection

from bench.errors import ShardError, UsageError
from bench.results.database import WriterLock, connected
from bench.results.merge import building, replacing
from bench.results.models import APPLICATION_ID, SCHEMA_VERSION, Base, create_indexes
from bench.results.union import attached


@dataclass(frozen=True)
class Migration:
    """What a migration made: rows by table, and the tables and columns that the old schema lacked, which are empty."""

    source: Path
    target: Path
    from_version: int
    rows: dict[str, int]
    empty: tuple[str, ...]


def migrate(source: Path, target: Path) -> Migration:
    """Write the rows of `source`, of an earlier schema, to the new database `target`.

    A version has so far only added tables, columns that may be empty, and words that a column may hold, so every row
    keeps all that it had.

    Raises:
        UsageError: `source` needs no migration, or `target` is there already.
        ShardError: `source` is no database of ours, a newer one's, or cannot be read.
    """
    version = _version(source)
    if version == SCHEMA_VERSION:
        raise UsageError(f"{source}: its schema is version {version} already; there is nothing to do")
    if target.exists():
        raise UsageError(f"{target}: is there already; name a new file")
    with WriterLock(target), replacing(target) as partial, building(partial) as connection:
        with attached(connection, source):
            # Of the new file's own words only the kind, which the old one says itself.
            connection.exec_driver_sql("DELETE FROM main.meta")
            rows, empty = _copied(connection)
        connection.exec_driver_sql("BEGIN")
        create_indexes(connection)
        connection.commit()
    return Migration(source, target, version, rows, empty)


def _version(path: Path) -> int:
    """The schema version of a database of ours that is not newer than this program."""
    with connected(path, "ro") as connection:
        application, version = (
            int(connection.exec_driver_sql(f"PRAGMA {name}").scalar_one())
            for name in ("application_id", "user_version")
        )
    if application != APPLICATION_ID:
        raise ShardError(f"{path}: a database of another program; leave it out")
    if not 1 <= version <= SCHEMA_VERSION:
        raise ShardError(f"{path}: its schema is version {version}, which only a newer Kernelcourt reads; use that one")
    return version


def _copied(connection: Connection) -> tuple[dict[str, int], tuple[str, ...]]:
    """Copy every table's shared columns; rows by table, and the tables and columns that only this version has."""
    rows: dict[str, int] = {}
    empty: list[str] = []
    for table in Base.metadata.sorted_tables:
        had = {row.name for row in connection.exec_driver_sql(f"PRAGMA input.table_info({table.name})")}
        if not had:
            empty.append(table.name)
            continue
        shared = ", ".join(f'"{column.name}"' for column in table.columns if column.name in had)
        empty += [f"{table.name}.{column.name}" for column in table.columns if column.name not in had]
        made = connection.exec_driver_sql(
            f"INSERT INTO main.{table.name} ({shared}) SELECT {shared} FROM input.{table.name}"
        )
        rows[table.name] = made.rowcount
    return rows, tuple(empty)
