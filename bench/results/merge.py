"""Many shards and the agents' episode records become one database, whole or not at all."""

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, func, insert, select
from sqlalchemy.dialects.sqlite import insert as upsert

from bench.errors import ShardError
from bench.judge.schemas import ADHOC, END_CODES, EpisodeLabel, EpisodeRecord
from bench.results.checks import Checked, Expectation, check, check_all, refuse_dangling
from bench.results.database import WriterLock, connected, naming
from bench.results.models import (
    Base,
    DatabaseKind,
    Disqualification,
    Episode,
    Grade,
    GradeCell,
    GradeSource,
    Meta,
    Reveal,
    ScalingGrade,
    ScalingPoint,
    Setup,
    Source,
    create_indexes,
    create_schema,
    table_of,
)
from bench.results.union import attached, contradiction, take
from bench.seeds import commitment, request_seed

_BATCH_ROWS = 1000
_TAKEN = (
    *(Setup, Episode, Grade, Source, GradeSource, GradeCell, Reveal),
    *(Disqualification, ScalingGrade, ScalingPoint),
)
# Nobody sees the file before it is complete, and then it is synced as a whole. The cache is in KiB.
_BUILD_PRAGMAS = (
    "page_size = 16384",
    "locking_mode = EXCLUSIVE",
    "journal_mode = OFF",
    "synchronous = OFF",
    "cache_size = -32768",
)


@dataclass(frozen=True)
class MergeReport:
    """What a merge made; `unrecorded_episodes` have grades but left no record of their own."""

    target: Path
    inputs: tuple[Checked, ...]
    setups: int
    episodes: int
    unrecorded_episodes: int
    grades: int
    sources: int
    reveals: int


def merge(
    target: Path,
    shards: Sequence[Path],
    episodes: Iterable[EpisodeRecord] = (),
    root: bytes | None = None,
    expect: Expectation | None = None,
) -> MergeReport:
    """Merge shards (or merged databases) and a job's episode records into `target`, by natural keys.

    What `target` holds already stays, so a merge may be repeated, or go on with more inputs: the same inputs
    give the same content, in any order. `root` is the job's secret, from which the seeds are revealed. A new
    file replaces `target` when it is complete; a reader never sees a part.

    Raises:
        ShardError: an input is missing, damaged, foreign, unfinished or not the expected one; two inputs
            contradict each other; a reference leads nowhere; a seed is not the one committed to. `target` is
            then as it was.
    """
    with WriterLock(target), replacing(target) as partial:
        inputs = _check_inputs(target, shards, expect)
        with building(partial) as connection:
            for one in inputs:
                _take_input(connection, one)
            with naming(target):
                connection.exec_driver_sql("BEGIN")
                create_indexes(connection)
                _add_episodes(connection, target, _job_of(inputs, expect), episodes)
                keep_places(connection, target)
                if root is not None:
                    _reveal(connection, target, _job_of(inputs, expect), root)
                connection.commit()
            refuse_dangling(connection, target)
            return _report(connection, target, inputs)


def _check_inputs(target: Path, shards: Sequence[Path], expect: Expectation | None) -> tuple[Checked, ...]:
    """The inputs, each file once, after what `target` holds already."""
    by_file = {path.resolve(): path for path in shards if path.resolve() != target.resolve()}
    inputs = check_all(list(by_file.values()), expect)
    if not target.exists():
        return inputs
    try:
        earlier = check(target)
    except ShardError as error:
        raise ShardError(f"{error}\nmove {target.name} away and merge again: that makes it anew") from error
    if earlier.identity.kind is DatabaseKind.SHARD:
        raise ShardError(f"{target}: a shard, which a merge must not replace; choose another target")
    return (earlier, *inputs)


def _job_of(inputs: Sequence[Checked], expect: Expectation | None) -> str | None:
    """The job that episode records and the secret belong to: the expected one, else the only one there is."""
    jobs = {one.identity.job_id for one in inputs if one.identity.job_id not in (None, ADHOC)}
    return expect.job_id if expect else jobs.pop() if len(jobs) == 1 else None


def _take_input(connection: Connection, one: Checked) -> None:
    with attached(connection, one.path):
        take(connection, one.path, _TAKEN)
        if one.identity.kind is DatabaseKind.SHARD:
            value = f"job {one.identity.job_id} rank {one.identity.rank}"
            merged = upsert(Meta).values(key=f"shard {one.identity.shard}", value=value)
            connection.execute(merged.on_conflict_do_nothing())
        else:
            connection.exec_driver_sql("INSERT OR IGNORE INTO main.meta SELECT * FROM input.meta")


def _add_episodes(connection: Connection, target: Path, job_id: str | None, records: Iterable[EpisodeRecord]) -> None:
    table = table_of(Episode)
    for record in records:
        row = _episode_row(_named(target, job_id), record)
        there = (Episode.job_id == row["job_id"]) & (Episode.label == record.label)
        stored = connection.execute(select(table).where(there)).mappings().one_or_none()
        if stored is None:
            connection.execute(insert(table), row)
        elif dict(stored) != row:
            raise contradiction(target, table, dict(stored), row)


def _episode_row(job_id: str, record: EpisodeRecord) -> dict[str, Any]:
    return {**record.model_dump(), "job_id": job_id, "end_code": END_CODES.get(record.end)}


def _named(target: Path, job_id: str | None) -> str:
    if job_id is None:
        raise ShardError(f"{target}: the shards are not of one job; say which one the records and the secret are of")
    return job_id


def keep_places(connection: Connection, target: Path | str) -> None:
    """An episode row for each label that has grades and no record: what the label and its first grade say."""
    first = func.min(Grade.requested_at + Grade.grade_id)  # SQLite takes the other columns from the same row
    recorded = select(Episode.label).where(Episode.job_id == Grade.job_id, Episode.label == Grade.label)
    missing = (
        select(Grade.job_id, Grade.label, Grade.kernel, first)
        .where(Grade.label.is_not(None), ~recorded.exists())
        .group_by(Grade.job_id, Grade.label)
    )
    for rows in connection.execute(missing).partitions(_BATCH_ROWS):
        places = [_place(target, job_id, label or "", kernel) for job_id, label, kernel, _ in rows]
        connection.execute(insert(Episode), places)


def _place(target: Path | str, job_id: str, label: str, kernel: str) -> dict[str, Any]:
    try:
        parsed = EpisodeLabel.parse(label)
    except ValueError as error:
        raise ShardError(f"{target}: a grade of job {job_id} has a wrong label: {error}") from error
    return {
        "job_id": job_id,
        "label": label,
        "kernel": kernel,
        "setup": parsed.setup,
        "slot": parsed.slot,
        "node": parsed.node,
        "problem": parsed.problem,
        "worker": parsed.worker,
    }


def _reveal(connection: Connection, target: Path, job_id: str | None, root: bytes) -> None:
    """Publish the seed of every grade of the job, after checking it against what the grade committed to."""
    revealed = select(Reveal.grade_id).where(Reveal.grade_id == Grade.grade_id)
    hidden = select(Grade.grade_id, Grade.label, Grade.seed_commitment).where(
        Grade.job_id == _named(target, job_id), ~revealed.exists()
    )
    for rows in connection.execute(hidden).partitions(_BATCH_ROWS):
        seeds = []
        for grade_id, label, committed in rows:
            seed = request_seed(root, label or ADHOC, grade_id)
            if commitment(seed) != committed:
                raise ShardError(
                    f"{target}: grade {grade_id} was not made with this secret (its commitment differs);"
                    " give the secret of its job"
                )
            seeds.append((grade_id, seed.hex()))
        connection.exec_driver_sql("INSERT INTO reveals (grade_id, seed) VALUES (?, ?)", seeds)


def _report(connection: Connection, target: Path, inputs: tuple[Checked, ...]) -> MergeReport:
    def count(model: type[Base], *where: Any) -> int:
        return connection.execute(select(func.count()).select_from(model).where(*where)).scalar_one()

    return MergeReport(
        target=target,
        inputs=inputs,
        setups=count(Setup),
        episodes=count(Episode),
        unrecorded_episodes=count(Episode, Episode.end.is_(None)),
        grades=count(Grade),
        sources=count(Source),
        reveals=count(Reveal),
    )


@contextlib.contextmanager
def building(partial: Path) -> Iterator[Connection]:
    """A connection to a new, empty database of this schema, without indexes, that nobody sees yet."""
    with connected(partial, "rwc", begin=None, pragmas=_BUILD_PRAGMAS) as connection:
        connection.exec_driver_sql("BEGIN")
        create_schema(connection)
        connection.execute(insert(Meta), {"key": "kind", "value": DatabaseKind.RESULTS})
        connection.commit()
        yield connection


@contextlib.contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A path to build at; on success it is synced and takes the target's place."""
    partial = target.with_name(f".{target.name}.merging")
    try:
        partial.unlink(missing_ok=True)
        yield partial
        _sync(partial)
        partial.replace(target)
        _sync(target.parent)
    except OSError as error:
        raise ShardError(f"{target}: cannot be written ({error.strerror}); check its folder and disk") from error
    finally:
        partial.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
