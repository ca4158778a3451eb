"""A merge is whole or not at all, the same however often and in whatever order, and refuses what is wrong by name."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from results_rows import LABEL, ROOT, SETUPS, episode, origin, report

from bench.errors import ShardError
from bench.judge.schemas import End, EpisodeRecord, Kind, SetupRecord
from bench.results.checks import Expectation
from bench.results.merge import MergeReport, merge
from bench.results.shard import Shard
from bench.seeds import request_seed

TABLES = (
    *("meta", "setups", "episodes", "grades", "sources", "grade_sources", "grade_cells", "reveals"),
    *("disqualifications", "scaling_grades", "scaling_points"),
)


def make(path: Path, rank: int, grades: Sequence[str] = ("g",), label: str = LABEL, job_id: str = "7") -> Path:
    """A shard with submits of one episode."""
    with Shard.open(path, job_id, rank, SETUPS) as shard:
        for grade_id in grades:
            shard.record(origin(label), report(f"{grade_id}{rank}", label))
    return path


def content(path: Path) -> dict[str, list[tuple[object, ...]]]:
    with sqlite3.connect(path) as connection:
        return {name: sorted(connection.execute(f"SELECT * FROM {name}"), key=repr) for name in TABLES}


@pytest.fixture
def shards(tmp_path: Path) -> list[Path]:
    return [make(tmp_path / f"rank-{rank}.db", rank, ("a", "b")) for rank in range(2)]


def test_everything_arrives(shards: list[Path], tmp_path: Path) -> None:
    target = tmp_path / "results.db"
    records = [episode(), episode("demo-noop-c.n0.p1.w0.s1", end=End.TIME, exit_code=124)]
    done = merge(target, shards, records, ROOT, Expectation("7", (0, 1)))
    assert (done.setups, done.episodes, done.unrecorded_episodes) == (2, 2, 0)
    assert (done.grades, done.sources, done.reveals) == (4, 5, 4)
    rows = content(target)
    assert len(rows["grade_sources"]) == 8 and len(rows["grade_cells"]) == 4
    assert ("a0", request_seed(ROOT, LABEL, "a0").hex()) in rows["reveals"]
    assert [row[8:10] for row in rows["episodes"]] == [("submitted", 123), ("time", 124)]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["rank-0.db", "rank-1.db", "results.db"]


def test_the_result_opens_with_every_reference_resolved(shards: list[Path], tmp_path: Path) -> None:
    merge(tmp_path / "results.db", shards)
    with sqlite3.connect(tmp_path / "results.db") as connection:
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert connection.execute("SELECT count(*) FROM grades_flat").fetchone() == (4,)


def test_an_episode_without_a_record_keeps_a_place_until_it_comes(shards: list[Path], tmp_path: Path) -> None:
    target = tmp_path / "results.db"
    assert merge(target, shards).unrecorded_episodes == 1
    place = content(target)["episodes"][0]
    assert place[:9] == ("7", LABEL, "demo-gold-c", "axpy", 0, 0, 0, 0, None)
    done = merge(target, shards, [episode()])
    assert (done.episodes, done.unrecorded_episodes) == (1, 0)
    assert merge(target, shards).unrecorded_episodes == 0


@pytest.mark.parametrize(
    "again",
    [
        lambda target, shards: shards,
        lambda target, shards: [*reversed(shards), shards[0]],
        lambda target, shards: [target, *shards],
        lambda target, shards: [target],
        lambda target, shards: shards[:1],
    ],
    ids=["same", "reversed-and-twice", "with-itself", "itself-alone", "a-part"],
)
def test_merging_again_changes_nothing(
    shards: list[Path], tmp_path: Path, again: Callable[[Path, list[Path]], list[Path]]
) -> None:
    target = tmp_path / "results.db"
    merge(target, shards, [episode()], ROOT)
    before = content(target)
    merge(target, again(target, shards))
    assert content(target) == before


def test_a_shard_that_went_on_adds_its_new_grades(shards: list[Path], tmp_path: Path) -> None:
    target = tmp_path / "results.db"
    merge(target, shards)
    make(shards[1], 1, ("c",))
    assert merge(target, shards).grades == 5
    merge(tmp_path / "fresh.db", shards)
    assert content(tmp_path / "fresh.db") == content(target)


GRADES = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 12), st.integers(0, 3), st.sampled_from(list(Kind))),
    max_size=12,
    unique_by=lambda grade: grade[1],
)


@settings(max_examples=8)
@given(grades=GRADES, order=st.permutations(range(3)), recorded=st.sets(st.integers(0, 3)), split=st.integers(0, 3))
def test_any_rows_in_any_order_give_one_content(
    grades: list[tuple[int, int, int, Kind]], order: list[int], recorded: set[int], split: int
) -> None:
    records = [episode(f"demo-gold-c.n0.p{problem}.w0") for problem in recorded]
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / f"rank-{rank}.db" for rank in range(3)]
        for rank, path in enumerate(paths):
            with Shard.open(path, "7", rank, SETUPS) as shard:
                for _, number, problem, kind in (grade for grade in grades if grade[0] == rank):
                    label = f"demo-gold-c.n0.p{problem}.w0"
                    shard.record(origin(label, kind), report(f"g{number}", label))
        at_once, in_steps = Path(folder) / "at-once.db", Path(folder) / "in-steps.db"
        merge(at_once, paths, records, ROOT)
        mixed = [paths[number] for number in order]
        merge(in_steps, mixed[:split])
        merge(in_steps, mixed[split:], records, ROOT, Expectation("7", ()) if split == 3 else None)
        assert content(in_steps) == content(at_once)
        assert len(content(at_once)["grades"]) == len(grades)


def scaled(path: Path, ratio: float = 1.5) -> Path:
    """Rows of a ruling and of a scaling grade with two points, of grade a0."""
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO disqualifications VALUES ('a0', '2026-02-01', 'disqualified', 'why', 'me')")
        connection.execute(
            "INSERT INTO scaling_grades VALUES ('s', 'a0', 'strong', 'solved', NULL, 'mw4x5', 'cpu', NULL, 'c', '{}',"
            " '0.1.0', 'node1', '2026-02-01', '2026-02-02')"
        )
        for index, ranks in enumerate((1, 2)):
            point = (index, ranks, ranks, ratio)
            connection.execute("INSERT INTO scaling_points VALUES ('s', ?, ?, ?, '{}', 'solved', ?, '[]', '[]')", point)
    return path


def test_rulings_and_scaling_grades_are_merged_and_stay(shards: list[Path], tmp_path: Path) -> None:
    one, other = tmp_path / "one.db", tmp_path / "other.db"
    merge(one, shards)
    merge(other, [scaled(one)])
    merge(other, shards)
    rows = content(other)
    assert [len(rows[name]) for name in TABLES[-3:]] == [1, 1, 2]
    assert rows == content(one)


def other_point(connection: sqlite3.Connection) -> None:
    connection.execute('UPDATE scaling_points SET ratio = 9 WHERE "index" = 1')


def other_reason(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE disqualifications SET why = 'no'")


def ruling_of_nothing(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO disqualifications VALUES ('lost', '2026', 'accepted', 'why', 'me')")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (other_point, r"scaling_points: scaling_id 's', index '1' has two definitions \(ratio is 9.0, elsewhere 1.5"),
        (other_reason, r"disqualifications: grade_id 'a0', at '2026-02-01'.*why is 'no', elsewhere 'why'"),
        (ruling_of_nothing, r"disqualifications: a row refers to a row of grades that is not there"),
    ],
)
def test_a_ruling_or_point_that_contradicts_is_refused(
    shards: list[Path], tmp_path: Path, spoil: Callable[[sqlite3.Connection], None], message: str
) -> None:
    paths = [tmp_path / "one.db", tmp_path / "other.db"]
    for path in paths:
        merge(path, shards)
        scaled(path)
    with sqlite3.connect(paths[1]) as connection:
        spoil(connection)
    with pytest.raises(ShardError, match=message):
        merge(tmp_path / "results.db", paths)


def missing(paths: list[Path]) -> None:
    paths[1].unlink()


def damaged(paths: list[Path]) -> None:
    size = paths[1].stat().st_size
    with paths[1].open("r+b") as file:
        file.seek(size // 2)
        file.write(os.urandom(size // 2))


def half_made(paths: list[Path]) -> None:
    os.truncate(paths[1], 0)


def cut_short(paths: list[Path]) -> None:
    os.truncate(paths[1], 20_000)


def no_database(paths: list[Path]) -> None:
    paths[1].write_text("rank 1 was here\n" * 500)


def another_program(paths: list[Path]) -> None:
    paths[1].unlink()
    with sqlite3.connect(paths[1]) as connection:
        connection.execute("CREATE TABLE grades (x)")


def newer(paths: list[Path]) -> None:
    with sqlite3.connect(paths[1]) as connection:
        connection.execute("PRAGMA user_version = 99")


def without_meta(paths: list[Path]) -> None:
    with sqlite3.connect(paths[1]) as connection:
        connection.execute("DELETE FROM meta WHERE key = 'rank'")


def another_rank(paths: list[Path]) -> None:
    paths[1].unlink()
    make(paths[1], 5)


def another_job(paths: list[Path]) -> None:
    paths[1].unlink()
    make(paths[1], 1, job_id="8")


def rank_twice(paths: list[Path]) -> None:
    paths.append(make(paths[1].with_name("again.db"), 1))


def rank_left_out(paths: list[Path]) -> None:
    del paths[1]


def another_setup(paths: list[Path]) -> None:
    with sqlite3.connect(paths[1]) as connection:
        connection.execute("UPDATE setups SET model = 'other' WHERE setup = 'demo-gold-c'")


def another_row(paths: list[Path]) -> None:
    with sqlite3.connect(paths[1]) as connection:
        for table in ("grades", "grade_sources", "grade_cells"):
            connection.execute(f"UPDATE {table} SET grade_id = 'a0' WHERE grade_id = 'a1'")
        connection.execute("UPDATE grades SET score = 99 WHERE grade_id = 'a0'")


def unknown_setup(paths: list[Path]) -> None:
    with sqlite3.connect(paths[1]) as connection:
        connection.execute("UPDATE grades SET setup = 'lost' WHERE grade_id = 'a1'")


def lost_grade(paths: list[Path]) -> None:
    with sqlite3.connect(paths[1]) as connection:
        connection.execute("UPDATE grades SET of_grade_id = 'lost' WHERE grade_id = 'a1'")


def wrong_label(paths: list[Path]) -> None:
    with sqlite3.connect(paths[1]) as connection:
        connection.execute("UPDATE grades SET label = 'nobody' WHERE grade_id = 'a1'")


def other_seed(paths: list[Path]) -> None:
    with sqlite3.connect(paths[1]) as connection:
        connection.execute("UPDATE grades SET seed_commitment = 'x' WHERE grade_id = 'a1'")


REFUSALS: dict[Callable[[list[Path]], None], str] = {
    missing: r"rank-1.db: no such file",
    damaged: r"rank-1.db: .*(damaged|malformed)",
    half_made: r"rank-1.db: an empty file",
    cut_short: r"rank-1.db: .*damaged",
    no_database: r"rank-1.db: .*not a (results )?database",
    another_program: r"rank-1.db: a database of another program",
    newer: r"rank-1.db: its schema is version 99",
    without_meta: r"rank-1.db: its meta table is incomplete or wrong",
    another_rank: r"rank-1.db: of job 7 rank 5; expected: job 7, ranks 0, 1\njob 7: no shard of rank 1",
    another_job: r"rank-1.db: of job 8 rank 1; expected: job 7",
    rank_twice: r"again.db: a second shard of rank 1, beside .*rank-1.db",
    rank_left_out: r"job 7: no shard of rank 1",
    another_setup: r"rank-1.db: setups: setup 'demo-gold-c'.*model is 'other', elsewhere ''",
    another_row: r"rank-1.db: grades: grade_id 'a0'.*score is 99.0, elsewhere 1.5",
    unknown_setup: r"results.db: grades: grade_id 'a1' refers to a row of setups",
    lost_grade: r"results.db: grades: grade_id 'a1' refers to a row of grades",
    wrong_label: r"'nobody' is not an episode label",
    other_seed: r"grade a1 was not made with this secret",
}


@pytest.mark.parametrize("spoil", REFUSALS, ids=lambda spoil: spoil.__name__)
def test_a_wrong_input_is_refused_by_name_and_nothing_is_written(
    shards: list[Path], tmp_path: Path, spoil: Callable[[list[Path]], None]
) -> None:
    spoil(shards)
    with pytest.raises(ShardError, match=f"(?s){REFUSALS[spoil]}"):
        merge(tmp_path / "results.db", shards, root=ROOT, expect=Expectation("7", (0, 1)))
    assert [entry.name for entry in tmp_path.iterdir() if "results" in entry.name] == []


def test_a_refused_merge_leaves_the_earlier_result(shards: list[Path], tmp_path: Path) -> None:
    target = tmp_path / "results.db"
    merge(target, shards)
    before = target.read_bytes()
    damaged(shards)
    with pytest.raises(ShardError):
        merge(target, shards)
    assert target.read_bytes() == before


def test_all_faults_are_named_at_once(shards: list[Path], tmp_path: Path) -> None:
    half_made(shards)
    shards[0].unlink()
    with pytest.raises(ShardError) as refused:
        merge(tmp_path / "results.db", shards)
    assert [line.split(":")[0] for line in str(refused.value).splitlines()] == [str(shard) for shard in shards]


def test_a_damaged_target_is_named_with_the_way_out(shards: list[Path], tmp_path: Path) -> None:
    target = tmp_path / "results.db"
    target.write_text("half a result")
    with pytest.raises(ShardError, match=r"move results.db away and merge again"):
        merge(target, shards)


def test_a_shard_is_no_target(shards: list[Path]) -> None:
    before = shards[0].read_bytes()
    with pytest.raises(ShardError, match="a shard, which a merge must not replace"):
        merge(shards[0], shards[1:])
    assert shards[0].read_bytes() == before


def test_two_records_of_one_episode_are_refused(shards: list[Path], tmp_path: Path) -> None:
    with pytest.raises(ShardError, match=r"episodes: .*wall_s is 99.0, elsewhere 12.5"):
        merge(tmp_path / "results.db", shards, [episode(), episode(wall_s=99.0)])


def test_a_record_of_an_unknown_setup_is_refused(shards: list[Path], tmp_path: Path) -> None:
    with pytest.raises(ShardError, match=r"episodes: job_id '7', label 'lost.n0.p0.w0' refers to a row of setups"):
        merge(tmp_path / "results.db", shards, [episode("lost.n0.p0.w0")])


@pytest.mark.parametrize("given_to_it", [{"episodes": [episode()]}, {"root": ROOT}], ids=["records", "secret"])
def test_records_and_a_secret_need_one_job(tmp_path: Path, given_to_it: dict[str, Iterable[EpisodeRecord]]) -> None:
    paths = [make(tmp_path / f"{job}.db", 0, (job,), job_id=job) for job in ("7", "8")]
    with pytest.raises(ShardError, match="not of one job"):
        merge(tmp_path / "results.db", paths, **given_to_it)
    assert merge(tmp_path / "results.db", paths).grades == 2


def test_results_of_several_jobs_become_one(tmp_path: Path) -> None:
    results = []
    for job in ("7", "8"):
        shard = make(tmp_path / f"shard-{job}.db", 0, (job,), job_id=job)
        merge(tmp_path / f"results-{job}.db", [shard], [episode()], ROOT)
        results.append(tmp_path / f"results-{job}.db")
    done = merge(tmp_path / "all.db", results)
    assert (done.grades, done.episodes, done.reveals) == (2, 2, 2)
    assert {row[0] for row in content(tmp_path / "all.db")["episodes"]} == {"7", "8"}


def test_a_live_shard_can_be_merged(tmp_path: Path) -> None:
    with Shard.open(tmp_path / "rank-0.db", "7", 0, SETUPS) as shard:
        shard.record(origin(), report("g1"))
        assert merge(tmp_path / "results.db", [shard.path]).grades == 1
        shard.record(origin(), report("g2"))
        assert merge(tmp_path / "results.db", [shard.path]).grades == 2


def test_an_unwritable_place_is_named(shards: list[Path]) -> None:
    with pytest.raises(ShardError, match=r"/proc/results.db"):
        merge(Path("/proc/results.db"), shards)


def test_setups_of_two_shards_are_joined(tmp_path: Path) -> None:
    for rank, name in enumerate(("one-c", "two-c")):
        Shard.open(tmp_path / f"{rank}.db", "7", rank, {name: SetupRecord(setup=name)}).close()
    done: MergeReport = merge(tmp_path / "results.db", [tmp_path / "0.db", tmp_path / "1.db"])
    assert (done.setups, done.grades) == (2, 0)


PEAK = """
import resource, sys
from pathlib import Path
from bench.results.merge import merge
folder = Path(sys.argv[1])
merge(folder / f"results-{sys.argv[2]}.db", [folder / f"rank-{rank}.db" for rank in range(int(sys.argv[2]))])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_memory_does_not_grow_with_the_shards(tmp_path: Path) -> None:
    for rank in range(6):
        with sqlite3.connect(make(tmp_path / f"rank-{rank}.db", rank)) as connection:
            connection.execute(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)"
                f" INSERT INTO sources SELECT '{rank}-' || i, 4000, zeroblob(4000) FROM n"
            )
    peaks = [
        int(subprocess.run([sys.executable, "-c", PEAK, tmp_path, str(n)], capture_output=True, check=True).stdout)
        for n in (3, 6)
    ]
    # Both are beyond the cache; 48 MB more of rows may cost a few MB, not their own size.
    assert peaks[1] - peaks[0] < 10 << 10, f"{peaks} KiB"
