"""The one place that writes grades: a SQLite file a rank, one writer, durable before the answer."""

import contextlib
import threading
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from sqlalchemy import Connection, Engine, Executable, select
from sqlalchemy.dialects.sqlite import insert

from bench.errors import ShardError
from bench.judge.schemas import ANSWER_KINDS, Kind, Outcome, SetupRecord
from bench.records import GradeReport
from bench.results.database import BUSY_TIMEOUT_S, Identity, WriterLock, engine, identify, naming
from bench.results.models import (
    DatabaseKind,
    Grade,
    GradeCell,
    GradeSource,
    Meta,
    Reveal,
    Setup,
    Source,
    create_indexes,
    create_schema,
    table_of,
)
from bench.results.rows import GradeOrigin, cell_rows, grade_row, grade_source_rows, source_rows
from bench.results.stored import StoredText
from bench.results.union import contradiction

# The rollback journal is the only one that works on network file systems (WAL needs memory shared by all
# readers). Its deletion is what commits; EXTRA also syncs the folder after it, without which a power cut
# could bring the journal back and with it undo a grade that was answered. FULL leaves that gap.
_WRITER_PRAGMAS = ("journal_mode = DELETE", "synchronous = EXTRA")


@dataclass(frozen=True)
class StoredAnswer:
    """An answer as it was given: whose it is, and its JSON text."""

    grade_id: str
    label: str | None
    kind: Kind
    outcome: Outcome
    body_sha256: str | None
    answer: str


class ShardReader:
    """Reads of one shard; threads may share it. Every method raises ShardError when reading fails."""

    def __init__(self, path: Path, opened: Engine, identity: Identity) -> None:
        self.path = path
        self.identity = identity
        self._engine = opened
        self._threads = threading.Lock()

    def find_key(self, label: str | None, kind: Kind, key: str) -> StoredAnswer | None:
        """The grade made for an idempotency key of this episode and route (`/score`; `/submit` of any kind).

        A fault of the judge is returned only where no grade followed it: such a key may be graded again.
        """
        route = Grade.kind == Kind.SCORE if kind is Kind.SCORE else Grade.kind != Kind.SCORE
        faults_last = Grade.outcome == Outcome.JUDGE_FAULT
        wanted = _ANSWER.where(Grade.label.is_(label), route, Grade.idempotency_key == key)
        return self._answer(wanted.order_by(faults_last, Grade.finished_at.desc()))

    def answer(self, grade_id: str) -> StoredAnswer | None:
        """The stored answer to an earlier request."""
        return self._answer(_ANSWER.where(Grade.grade_id == grade_id))

    def accepted_submit(self, label: str) -> str | None:
        """Grade id of the first accepted submit: any outcome but a fault."""
        wanted = select(Grade.grade_id).where(
            Grade.label == label, Grade.kind.in_(ANSWER_KINDS), Grade.outcome != Outcome.JUDGE_FAULT
        )
        with self._transaction() as connection:
            found: str | None = connection.execute(wanted.order_by(Grade.requested_at)).scalar()
        return found

    def grade_source(self, grade_id: str) -> StoredText | None:
        """The submission that a grade was made of."""
        wanted = select(GradeSource.name, Source.sha256, Source.content).join(
            Source, Source.sha256 == GradeSource.sha256
        )
        with self._transaction() as connection:
            row = connection.execute(
                wanted.where(GradeSource.grade_id == grade_id, GradeSource.role == "submission")
            ).one_or_none()
        return StoredText(*row) if row else None

    def close(self) -> None:
        """Give the file back."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with self._threads, naming(self.path), self._engine.begin() as connection:
            yield connection

    def _answer(self, wanted: Executable) -> StoredAnswer | None:
        with self._transaction() as connection:
            row = connection.execute(wanted).first()
        return StoredAnswer(*row) if row else None


_ANSWER = select(Grade.grade_id, Grade.label, Grade.kind, Grade.outcome, Grade.body_sha256, Grade.answer)


class Shard(ShardReader):
    """The writer of one database. `open` is the way in; one process at a time, unless it is shared."""

    def __init__(self, path: Path, opened: Engine, identity: Identity, lock: WriterLock, shared: bool) -> None:
        super().__init__(path, opened, identity)
        self._lock = lock
        self._shared = shared

    @classmethod
    def open(
        cls,
        path: Path,
        job_id: str,
        rank: int,
        setups: Mapping[str, SetupRecord] | None = None,
        *,
        shared: bool = False,
    ) -> Self:
        """Open a rank's shard for writing, or make it, and add the setups that it does not know yet.

        A shared one may be open in several processes: each takes the writer's lock for a transaction only.

        Raises:
            ShardError: another process writes it, it is damaged, unwritable, another job's or rank's, or
                knows one of the setups by another definition.
        """
        lock = WriterLock(path)
        _make_folder(path)
        with contextlib.ExitStack() as undo:
            undo.callback(lock.release)
            lock.acquire(BUSY_TIMEOUT_S if shared else 0.0)
            opened = engine(path, "rwc", begin="BEGIN IMMEDIATE", pragmas=_WRITER_PRAGMAS)
            undo.callback(opened.dispose)
            with naming(path), opened.begin() as connection:
                identity = _claim(connection, path, job_id, rank)
                for setup in (setups or {}).values():
                    _add_setup(connection, path, setup)
            undo.pop_all()
        if shared:
            lock.release()
        return cls(path, opened, identity, lock, shared)

    def record(self, origin: GradeOrigin, report: GradeReport, *, reveal: bytes | None = None) -> bool:
        """Store one grade with its sources and cells; it is durable when this returns.

        `reveal` is the request's seed, where it need not stay secret. Returns False, and changes nothing,
        when the grade is there already.

        Raises:
            ShardError: the disk is full, the file is lost, the setup is unknown, or its key was used.
        """
        with self._transaction() as connection:
            if connection.execute(select(Grade.grade_id).filter_by(grade_id=report.grade_id)).first():
                return False
            self._check_setup(connection, origin.setup)
            connection.execute(insert(Grade), grade_row(self.identity, origin, report))
            for source in source_rows(report):
                connection.execute(insert(Source).on_conflict_do_nothing(), source)
            for model, rows in (
                (GradeSource, grade_source_rows(report)),
                (GradeCell, cell_rows(report)),
                (Reveal, [{"grade_id": report.grade_id, "seed": reveal.hex()}] if reveal else []),
            ):
                if rows:
                    connection.execute(insert(model), rows)
        return True

    def close(self) -> None:
        """Close the file and give the writer's lock back."""
        super().close()
        self._lock.release()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[Connection]:
        hold = self._lock if self._shared else contextlib.nullcontext()
        with self._threads, hold, naming(self.path), self._engine.begin() as connection:
            yield connection

    def _check_setup(self, connection: Connection, setup: str | None) -> None:
        known = set(connection.execute(select(Setup.setup)).scalars())
        if setup is not None and setup not in known:
            raise ShardError(
                f"{self.path}: a grade names setup '{setup}', which this job does not serve;"
                f" it serves {', '.join(sorted(known)) or 'none'}"
            )


def read_only(path: Path) -> ShardReader:
    """Open another process's shard for reading, while it is written or after its writer is gone.

    Raises:
        ShardError: it is missing, damaged, not a database of ours, or its writer died in mid-write: only
            one who may write can roll that back.
    """
    opened = engine(path, "ro")
    try:
        with naming(path), opened.begin() as connection:
            identity = identify(connection, path)
        if identity is None:
            raise ShardError(f"{path}: an empty file; its judge has not finished making it")
        return ShardReader(path, opened, identity)
    except ShardError:
        opened.dispose()
        raise


def _make_folder(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ShardError(f"{path}: its folder cannot be made ({error.strerror}); choose another") from error


def _claim(connection: Connection, path: Path, job_id: str, rank: int) -> Identity:
    """Identity of the shard; an empty file gets schema, header and meta rows now, in one transaction."""
    identity = identify(connection, path)
    if identity is None:
        return _create(connection, job_id, rank)
    if identity.kind is not DatabaseKind.SHARD:
        raise ShardError(f"{path}: a merged database, not a shard; a judge needs a file of its own")
    if (identity.job_id, identity.rank) != (job_id, rank):
        raise ShardError(
            f"{path}: the shard of job {identity.job_id} rank {identity.rank}, not of job {job_id}"
            f" rank {rank}; give each rank a file of its own"
        )
    fault = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one()
    if fault != "ok":
        raise ShardError(f"{path}: damaged ({fault}); move it away, the judge makes a new one")
    return identity


def _create(connection: Connection, job_id: str, rank: int) -> Identity:
    create_schema(connection)
    create_indexes(connection)
    created_at = datetime.now(UTC).isoformat(timespec="milliseconds")
    identity = Identity(DatabaseKind.SHARD, job_id, rank, str(uuid.uuid4()), created_at)
    facts = {key: str(value) for key, value in asdict(identity).items()}
    connection.execute(insert(Meta), [{"key": key, "value": value} for key, value in facts.items()])
    return identity


def _add_setup(connection: Connection, path: Path, setup: SetupRecord) -> None:
    row = setup.model_dump()
    stored = connection.execute(select(table_of(Setup)).where(Setup.setup == setup.setup)).mappings().one_or_none()
    if stored is None:
        connection.execute(insert(Setup), row)
    elif dict(stored) != row:
        raise contradiction(path, table_of(Setup), dict(stored), row)
