"""A database of an earlier version becomes one of this version's: every row keeps what it had."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from results_rows import LABEL, ROOT, SETUPS, episode, origin, report
from typer.testing import CliRunner

from bench.commands.db import app
from bench.errors import KernelcourtError, ShardError, UsageError
from bench.judge.schemas import Language
from bench.results.checks import check
from bench.results.merge import merge
from bench.results.migrate import migrate
from bench.results.queries import opened, verdicts
from bench.results.shard import Shard

NEW_IN_2 = (
    *("resumed", "prices", "score_calls", "submit_calls", "profile_calls"),
    *("search_calls", "outcome"),
)
NEW_IN_4 = ("disqualifications", "scaling_grades", "scaling_points")


def age(path: Path, version: int) -> None:
    """Take from a database what came after a version."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("DROP VIEW grades_flat")
        for table in NEW_IN_4:
            database.execute(f"DROP TABLE {table}")
        if version < 2:
            names = [row[1] for row in database.execute("PRAGMA table_info(episodes)")]
            kept = ", ".join(name for name in names if name not in NEW_IN_2)
            database.execute(f"CREATE TABLE earlier AS SELECT {kept} FROM episodes")
            database.execute("DROP TABLE episodes")
            database.execute("ALTER TABLE earlier RENAME TO episodes")
        database.execute(f"PRAGMA user_version = {version}")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A merged database as version 1 wrote it: without what came later."""
    with Shard.open(tmp_path / "rank-0.db", "7", 0, SETUPS) as shard:
        shard.record(origin(LABEL), report("g0", LABEL))
    path = tmp_path / "old.db"
    merge(path, [tmp_path / "rank-0.db"], [episode(LABEL)], ROOT)
    age(path, 1)
    return path


def rows(path: Path, table: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as database:
        return database.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()


def test_an_old_database_is_refused_with_the_way_out(old: Path) -> None:
    with pytest.raises(ShardError, match=f"kcourt db migrate {old} NEW"), opened([old]):
        pass


def test_every_row_keeps_what_it_had_and_new_columns_are_empty(old: Path, tmp_path: Path) -> None:
    before = {table: rows(old, table) for table in ("meta", "setups", "grades", "sources", "grade_cells", "reveals")}
    done = migrate(old, tmp_path / "new.db")
    assert done.from_version == 1
    assert set(done.empty) == {*NEW_IN_4, *(f"episodes.{name}" for name in NEW_IN_2)}
    assert {table: rows(tmp_path / "new.db", table) for table in before} == before
    assert check(tmp_path / "new.db").grades == 1
    with opened([tmp_path / "new.db"]) as database:
        assert [one.solved for one in verdicts(database)] == [True]
        assert database.exec_driver_sql("SELECT resumed, attempts FROM episodes").one() == (None, 1)
        assert database.exec_driver_sql("SELECT count(*) FROM grades_flat").scalar_one() == 1


def test_a_migrated_database_takes_part_in_merges(old: Path, tmp_path: Path) -> None:
    migrate(old, tmp_path / "new.db")
    with Shard.open(tmp_path / "rank-1.db", "7", 1, SETUPS) as shard:
        shard.record(origin(LABEL), report("g1", LABEL))
    assert merge(tmp_path / "all.db", [tmp_path / "new.db", tmp_path / "rank-1.db"]).grades == 2


@pytest.mark.parametrize("version", [2, 3])
def test_a_shard_of_before_goes_on_once_it_is_migrated(tmp_path: Path, version: int) -> None:
    with Shard.open(tmp_path / "rank-0.db", "7", 0, SETUPS) as shard:
        shard.record(origin(LABEL), report("g0", LABEL))
    age(tmp_path / "rank-0.db", version)
    with pytest.raises(ShardError, match="kcourt db migrate"), Shard.open(tmp_path / "rank-0.db", "7", 0, SETUPS):
        pass
    done = migrate(tmp_path / "rank-0.db", tmp_path / "rank-1.db")
    assert (done.from_version, set(done.empty), done.rows["grades"]) == (version, set(NEW_IN_4), 1)
    with Shard.open(tmp_path / "rank-1.db", "7", 0, SETUPS) as shard:
        shard.record(replace(origin(LABEL), language=Language.TRITON), report("g1", LABEL))
    assert merge(tmp_path / "all.db", [tmp_path / "rank-1.db"]).grades == 2


def test_what_cannot_be_migrated_is_said_and_nothing_is_written(old: Path, tmp_path: Path) -> None:
    current, foreign, newer = tmp_path / "rank-0.db", tmp_path / "foreign.db", tmp_path / "newer.db"
    for path, version in ((foreign, 0), (newer, 99)):
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("CREATE TABLE t (x)")
            if version:
                database.execute("PRAGMA application_id = 1262703188")
                database.execute(f"PRAGMA user_version = {version}")
    cases: list[tuple[Path, type[KernelcourtError], str]] = [
        (current, UsageError, "nothing to do"),
        (foreign, ShardError, "another program"),
        (newer, ShardError, "newer Kernelcourt"),
        (tmp_path / "missing.db", ShardError, "missing.db"),
    ]
    for path, kind, said in cases:
        with pytest.raises(kind, match=said):
            migrate(path, tmp_path / "new.db")
        assert not (tmp_path / "new.db").exists()
    with pytest.raises(UsageError, match="name a new file"):
        migrate(old, current)


def test_the_command_says_what_it_made(old: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["migrate", str(old), str(tmp_path / "new.db")])
    assert done.exit_code == 0, done.output
    assert "version 1 became this one's" in done.output
    assert "1 grades" in done.output
