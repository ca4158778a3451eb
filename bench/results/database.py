"""How a results database is opened, recognised and checked, and how SQLite's errors become ours."""

import contextlib
import errno
import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from socket import gethostname
from typing import Literal, Self

from sqlalchemy import Connection, Engine, create_engine, event, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import StaticPool

from bench.errors import ShardError
from bench.results.models import APPLICATION_ID, SCHEMA_VERSION, DatabaseKind, Meta

BUSY_TIMEOUT_S = 30.0
_LOCK_POLL_S = 0.01

Mode = Literal["ro", "rw", "rwc"]


@dataclass(frozen=True)
class Identity:
    """What a database says of itself; a merged one has neither job, rank nor UUID."""

    kind: DatabaseKind
    job_id: str | None = None
    rank: int | None = None
    shard: str | None = None
    created_at: str | None = None


def uri(path: Path, mode: Mode) -> str:
    """SQLite's name for a file: `file:///<path>?mode=<mode>`."""
    return f"{path.absolute().as_uri()}?mode={mode}"


def engine(path: Path | None, mode: Mode, *, begin: str | None = "BEGIN", pragmas: tuple[str, ...] = ()) -> Engine:
    """An engine of one connection, which threads may share under a lock of their own; no path: in memory.

    The driver's own transactions are off: it would begin one late, as a reader, and the upgrade to a writer
    fails at once when another connection writes, whatever the busy timeout. `begin` says how each one
    starts; None leaves that to the caller.
    """

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(
            uri(path, mode) if path else ":memory:",
            uri=True,
            timeout=BUSY_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            for pragma in pragmas:
                connection.execute(f"PRAGMA {pragma}").fetchall()
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    made = create_engine("sqlite://", creator=connect, poolclass=StaticPool)
    if begin:
        event.listen(made, "begin", lambda connection: connection.exec_driver_sql(begin))
    return made


@contextlib.contextmanager
def connected(
    path: Path | None, mode: Mode, *, begin: str | None = "BEGIN", pragmas: tuple[str, ...] = ()
) -> Iterator[Connection]:
    """A connection with an engine of its own, gone after the block; SQLite's errors name the file."""
    opened = engine(path, mode, begin=begin, pragmas=pragmas)
    try:
        with naming(path or "several databases read as one"), opened.connect() as connection:
            yield connection
    finally:
        opened.dispose()


@contextlib.contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Turn SQLite's errors into a ShardError that names the file and says what to do."""
    try:
        yield
    except DBAPIError as error:
        if Path(path).is_dir():
            raise ShardError(f"{path}: a folder; name a database in it") from error
        raise ShardError(f"{path}: {error.orig}; {_advice(error.orig)}") from error


def _advice(error: BaseException | None) -> str:
    name = getattr(error, "sqlite_errorname", "")
    for prefix, advice in _ADVICE.items():
        if name.startswith(prefix):
            return advice
    return "check the file and its folder"


_ADVICE = {
    "SQLITE_FULL": "free space on the file system, then try again",
    "SQLITE_READONLY_ROLLBACK": "its writer died in mid-write; open it once where it may be written",
    "SQLITE_READONLY": "make the file and its folder writable",
    "SQLITE_CANTOPEN": "check that it is there, and that its folder may be read and written",
    "SQLITE_BUSY": "another process holds it; wait for that one or end it",
    "SQLITE_IOERR": "its file system refused a read or write: look for a full disk, a quota or lost storage",
    "SQLITE_NOTADB": "this is not a results database; leave it out",
    "SQLITE_CORRUPT": "the file is damaged; keep it, and take its rows from a copy or have them graded again",
    "SQLITE_CONSTRAINT": "the row contradicts one that is there",
}


def identify(connection: Connection, path: Path) -> Identity | None:
    """What the opened file says of itself; None for an empty one, left by a writer before its first commit.

    Raises:
        ShardError: SQLite cannot read it, or it is another program's, a newer one's or lacks its meta rows.
    """
    with naming(path):
        application, version, tables = (
            int(connection.exec_driver_sql(query).scalar_one())
            for query in (
                "PRAGMA application_id",
                "PRAGMA user_version",
                "SELECT count(*) FROM sqlite_master",
            )
        )
        if application == 0 and tables == 0:
            return None
        if application != APPLICATION_ID:
            raise ShardError(f"{path}: a database of another program (application id {application:#x}); leave it out")
        if version != SCHEMA_VERSION:
            older = f"`kcourt db migrate {path} NEW` writes one of this version"
            advice = older if version < SCHEMA_VERSION else "use the Kernelcourt that wrote it"
            raise ShardError(
                f"{path}: its schema is version {version}, this Kernelcourt reads version {SCHEMA_VERSION}; {advice}"
            )
        meta = dict(connection.execute(select(Meta.key, Meta.value)).all())
    return _identity(meta, path)


def _identity(meta: dict[str, str], path: Path) -> Identity:
    try:
        kind = DatabaseKind(meta["kind"])
        if kind is DatabaseKind.RESULTS:
            return Identity(kind)
        return Identity(kind, meta["job_id"], int(meta["rank"]), meta["shard"], meta["created_at"])
    except (KeyError, ValueError) as error:
        raise ShardError(f"{path}: its meta table is incomplete or wrong ({error}); the file is damaged") from error


class WriterLock:
    """The right to write one database: an flock on `<file>.lock`, which also says who holds it.

    The lock dies with its process, so it is never stale; the file is removed when the lock is given back.
    """

    def __init__(self, path: Path) -> None:
        self._database = path
        self._path = path.with_name(path.name + ".lock")
        self._descriptor: int | None = None

    def acquire(self, timeout_s: float = 0.0) -> None:
        """Take the lock, trying for `timeout_s` seconds.

        Raises:
            ShardError: another process (named by pid and host) holds it, or the folder cannot carry a lock.
        """
        deadline = time.monotonic() + timeout_s
        while not self._try():
            if time.monotonic() >= deadline:
                raise ShardError(
                    f"{self._database}: already open for writing by {self._holder()};"
                    " a database has one writer: end that process, or choose another file"
                )
            time.sleep(_LOCK_POLL_S)

    def release(self) -> None:
        """Give the lock back; nothing happens where it is not held."""
        if self._descriptor is not None:
            self._path.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = None

    def _try(self) -> bool:
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise ShardError(f"{self._path}: {error.strerror}; make the folder exist and writable") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The holder before may have removed the file between our open and our lock.
            held = self._path.exists() and os.path.samestat(os.fstat(descriptor), self._path.stat())
        except OSError as error:
            os.close(descriptor)
            if error.errno in (errno.EWOULDBLOCK, errno.ENOENT):
                return False
            raise ShardError(
                f"{self._path}: no locks on this file system ({error.strerror}); mount it with flock"
            ) from error
        if not held:
            os.close(descriptor)
            return False
        os.truncate(descriptor, 0)
        os.write(descriptor, f"process {os.getpid()} on {gethostname()}".encode())
        self._descriptor = descriptor
        return True

    def _holder(self) -> str:
        with contextlib.suppress(OSError):
            return self._path.read_text(encoding="utf-8") or "another process"
        return "another process"

    def __enter__(self) -> Self:
        self.acquire(BUSY_TIMEOUT_S)
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
