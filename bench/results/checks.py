"""Is a database whole, ours, and the one that was expected?"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, func, select

from bench.errors import ShardError
from bench.results.database import Identity, connected, identify, naming
from bench.results.models import Base, DatabaseKind, Grade

_READERS = 4


@dataclass(frozen=True)
class Expectation:
    """The shards that a job must have left: one of each rank, of this job."""

    job_id: str
    ranks: tuple[int, ...]


@dataclass(frozen=True)
class Checked:
    """A database that was found whole; `grades` is how many it holds."""

    path: Path
    identity: Identity
    grades: int


def check(path: Path) -> Checked:
    """Examine one database; in a merged one every reference must resolve.

    A transaction that its writer's death left open is rolled back on the way, where the file may be written.

    Raises:
        ShardError: it is missing, damaged, another program's, a newer schema's or unfinished.
    """
    if not path.is_file():
        raise ShardError(f"{path}: no such file; check the path, or have its rank's grades made again")
    with connected(path, "rw") as connection:
        identity = identify(connection, path)
        if identity is None:
            raise ShardError(f"{path}: an empty file: its writer died before it was made, so it holds no grades")
        fault = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one()
        if fault != "ok":
            raise ShardError(f"{path}: damaged ({fault}); keep it, and take its rows from a copy")
        if identity.kind is DatabaseKind.RESULTS:
            refuse_dangling(connection, path)
        grades = connection.execute(select(func.count()).select_from(Grade)).scalar_one()
    return Checked(path, identity, grades)


def check_all(paths: Sequence[Path], expect: Expectation | None = None) -> tuple[Checked, ...]:
    """Examine several databases, and whether they are the shards that a job must have left.

    Raises:
        ShardError: one line for each that is missing, faulty or not expected.
    """
    with ThreadPoolExecutor(max_workers=_READERS) as readers:
        found = [readers.submit(check, path) for path in paths]
    checked, faults = [], []
    for one in found:
        try:
            checked.append(one.result())
        except ShardError as error:
            faults.append(str(error))
    if expect:
        faults += _unexpected([one for one in checked if one.identity.kind is DatabaseKind.SHARD], expect)
    if faults:
        raise ShardError("\n".join(faults))
    return tuple(checked)


def refuse_dangling(connection: Connection, path: Path) -> None:
    """Raises ShardError naming the first row that refers to one which is not there."""
    with naming(path):
        found = connection.exec_driver_sql("PRAGMA foreign_key_check").first()
        if found is None:
            return
        name, rowid, parent, _ = found
        row = "a row" if rowid is None else _row_at(connection, name, rowid)
    raise ShardError(
        f"{path}: {name}: {row} refers to a row of {parent} that is not there; add the database that holds it"
    )


def _row_at(connection: Connection, table: str, rowid: int) -> str:
    keys = [column.name for column in Base.metadata.tables[table].primary_key]
    columns = ", ".join(f'"{key}"' for key in keys)
    found = connection.exec_driver_sql(f"SELECT {columns} FROM {table} WHERE rowid = ?", (rowid,)).one()
    return ", ".join(f"{key} '{value}'" for key, value in zip(keys, found, strict=True))


def _unexpected(shards: Sequence[Checked], expect: Expectation) -> Iterator[str]:
    by_rank: dict[int, Checked] = {}
    for one in shards:
        job_id, rank = one.identity.job_id, one.identity.rank
        if job_id != expect.job_id or rank not in expect.ranks:
            ranks = ", ".join(map(str, expect.ranks))
            yield f"{one.path}: of job {job_id} rank {rank}; expected: job {expect.job_id}, ranks {ranks}"
            continue
        other = by_rank.setdefault(rank, one)
        if other.identity.shard != one.identity.shard:
            yield f"{one.path}: a second shard of rank {rank}, beside {other.path}; leave out the wrong one"
    for rank in expect.ranks:
        if rank not in by_rank:
            yield f"job {expect.job_id}: no shard of rank {rank}; add its file"
