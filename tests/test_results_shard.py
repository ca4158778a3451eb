"""A shard keeps what was answered: through kills, second writers, full disks and wrong files."""

import contextlib
import json
import os
import re
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from results_rows import LABEL, SETUPS, origin, report
from sqlalchemy import Engine, event

from bench.errors import ShardError
from bench.judge.schemas import Kind, Outcome, SetupRecord
from bench.results.merge import merge
from bench.results.shard import Shard, read_only
from cluster.job.progress import count_grades

SAY_AND_WAIT = "print('ready', flush=True); sys.stdin.read()"


def child(code: str, *argv: object) -> "subprocess.Popen[str]":
    """A Python process that prints one line when it has done what a test wants, then waits to be killed."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n{code}",
            *map(str, argv),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def kill(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.communicate()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rank-0.db"


@pytest.fixture
def shard(path: Path):
    with Shard.open(path, "7", 0, SETUPS) as opened:
        yield opened


RECORD = """
from pathlib import Path
from results_rows import SETUPS, origin, report
from bench.results.shard import Shard
shard = Shard.open(Path(sys.argv[1]), "7", 0, SETUPS)
shard.record(origin(), report("g1"))
"""
MID_TRANSACTION = """
import sqlite3
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA cache_size = 1")
connection.execute("BEGIN IMMEDIATE")
connection.execute("UPDATE grades SET kernel = 'half'")
connection.executemany("INSERT INTO sources VALUES (?, 2000, zeroblob(2000))", [(str(n),) for n in range(200)])
"""


def test_a_grade_outlives_its_judge_being_killed(path: Path) -> None:
    kill(child(RECORD + SAY_AND_WAIT, path))
    with Shard.open(path, "7", 0, SETUPS) as shard:
        stored = shard.answer("g1")
        assert stored is not None
        assert (stored.label, stored.answer) == (LABEL, '{"grade_id": "as answered"}')
        assert shard.accepted_submit(LABEL) == "g1"


def test_a_transaction_that_was_cut_off_is_rolled_back(path: Path) -> None:
    with Shard.open(path, "7", 0, SETUPS) as shard:
        shard.record(origin(), report("g1"))
    kill(child(MID_TRANSACTION + SAY_AND_WAIT, path))
    assert path.with_name("rank-0.db-journal").stat().st_size > 0
    with Shard.open(path, "7", 0, SETUPS) as shard:
        assert shard.answer("g1") is not None
        assert shard.grade_source("g1") is not None
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT kernel, (SELECT count(*) FROM sources) FROM grades").fetchall() == [
            ("axpy", 2)
        ]


def test_a_merge_rolls_a_cut_off_transaction_back(path: Path, tmp_path: Path) -> None:
    with Shard.open(path, "7", 0, SETUPS) as shard:
        shard.record(origin(), report("g1"))
    kill(child(MID_TRANSACTION + SAY_AND_WAIT, path))
    assert merge(tmp_path / "results.db", [path]).sources == 2


def test_a_second_writer_is_refused_by_the_name_of_the_first(path: Path) -> None:
    first = child(RECORD + SAY_AND_WAIT, path)
    with pytest.raises(ShardError, match=rf"{path}: already open for writing by process {first.pid} on"):
        Shard.open(path, "7", 0, SETUPS)
    kill(first)
    Shard.open(path, "7", 0, SETUPS).close()
    assert [entry.name for entry in path.parent.iterdir()] == ["rank-0.db"]


def test_readers_see_a_live_shard(shard: Shard, path: Path) -> None:
    shard.record(origin(), report("g1"))
    with read_only(path) as reader:
        shard.record(origin(kind=Kind.SCORE), report("g2"))
        stored = reader.answer("g2")
        assert stored is not None and stored.kind is Kind.SCORE
        assert (reader.identity.job_id, reader.identity.rank) == ("7", 0)


def test_a_reader_in_mid_read_delays_a_grade_and_fails_none(shard: Shard, path: Path) -> None:
    shard.record(origin(), report("g1"))
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as reader:
        rows = reader.execute("SELECT grade_id FROM grades UNION ALL SELECT sha256 FROM sources")
        assert rows.fetchone() == ("g1",)
        recorded = []
        writer = threading.Thread(target=lambda: recorded.append(shard.record(origin(kind=Kind.SCORE), report("g2"))))
        writer.start()
        writer.join(0.3)
        assert recorded == []
        rows.close()
        writer.join(60)
    assert recorded == [True]


def test_no_reader_of_a_live_shard_meets_a_lock(shard: Shard, path: Path, tmp_path: Path) -> None:
    shard.record(origin(), report("first"))
    done, seen = threading.Event(), []

    def watch() -> None:
        while not done.is_set():
            with read_only(path) as reader:
                assert reader.answer("first") is not None
            seen.append(count_grades(path).total())

    def collect() -> None:
        while not done.is_set():
            seen.append(merge(tmp_path / "results.db", [path]).grades)

    with ThreadPoolExecutor() as others:
        running = [others.submit(task) for task in (watch, watch, collect)]
        try:
            for number in range(50):
                assert shard.record(origin(kind=Kind.SCORE), report(f"g{number}"))
        finally:
            done.set()
    for task in running:
        task.result()
    assert all(seen) and max(seen) <= 51


def test_what_writes_begins_as_a_writer(path: Path) -> None:
    begun = []

    def note(_: object, __: object, statement: str, *___: object) -> None:
        if statement.startswith("BEGIN"):
            begun.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        with Shard.open(path, "7", 0, SETUPS, shared=True) as shard:
            shard.record(origin(), report("g1"))
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    assert {*begun} == {"BEGIN IMMEDIATE"}


def test_the_file_is_kept_as_network_file_systems_need_it(shard: Shard, path: Path) -> None:
    shard.record(origin(), report("g1"))
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert connection.execute("PRAGMA application_id").fetchone() == (0x4B435254,)
        assert connection.execute("PRAGMA user_version").fetchone() == (4,)
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["rank-0.db", "rank-0.db.lock"]


def test_a_shard_that_somebody_set_to_wal_is_set_back(path: Path) -> None:
    with Shard.open(path, "7", 0, SETUPS) as shard:
        shard.record(origin(), report("g1"))
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    with Shard.open(path, "7", 0, SETUPS) as shard:
        assert shard.record(origin(kind=Kind.SCORE), report("g2"))
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_nothing_of_ours_asks_for_wal() -> None:
    packages = [Path(__file__).resolve().parent.parent / name for name in ("bench", "agent", "cluster")]
    asking = re.compile(r"journal_mode\s*=\s*WAL", re.IGNORECASE)
    assert [file for root in packages for file in root.rglob("*.py") if asking.search(file.read_text("utf-8"))] == []


def test_recording_again_keeps_the_first_row(shard: Shard) -> None:
    assert shard.record(origin(), report("g1"))
    assert not shard.record(origin(answer="{}"), report("g1", outcome=Outcome.WRONG, score=None))
    stored = shard.answer("g1")
    assert stored is not None and (stored.outcome, stored.answer) == (Outcome.SOLVED, '{"grade_id": "as answered"}')


@pytest.mark.parametrize(
    ("label", "kind", "key", "expected"),
    [
        (LABEL, Kind.SUBMIT, "k", "submit"),
        (LABEL, Kind.PROMOTED, "k", "submit"),
        (LABEL, Kind.SCORE, "k", "score"),
        ("demo-gold-c.n0.p1.w0", Kind.SUBMIT, "k", None),
        (None, Kind.SUBMIT, "k", "adhoc"),
        (LABEL, Kind.SUBMIT, "other", None),
    ],
    ids=["same", "another-kind-of-submit", "the-other-route", "another-episode", "ad-hoc", "another-key"],
)
def test_a_key_belongs_to_an_episode_and_a_route(
    shard: Shard, label: str | None, kind: Kind, key: str, expected: str | None
) -> None:
    shard.record(origin(kind=Kind.SUBMIT, idempotency_key="k", body_sha256="b"), report("submit"))
    shard.record(origin(kind=Kind.SCORE, idempotency_key="k", body_sha256="b"), report("score"))
    shard.record(origin(None, idempotency_key="k", body_sha256="b"), report("adhoc", None))
    stored = shard.find_key(label, kind, key)
    assert (stored.grade_id if stored else None) == expected
    assert stored is None or stored.body_sha256 == "b"


def test_a_key_is_used_once(shard: Shard) -> None:
    shard.record(origin(idempotency_key="k"), report("g1"))
    with pytest.raises(ShardError, match="contradicts"):
        shard.record(origin(idempotency_key="k"), report("g2"))
    assert shard.answer("g2") is None
    assert shard.record(origin(), report("g3"))


def test_a_fault_of_the_judge_leaves_the_key_free(shard: Shard) -> None:
    shard.record(origin(idempotency_key="k"), report("fault", outcome=Outcome.JUDGE_FAULT))
    stored = shard.find_key(LABEL, Kind.SUBMIT, "k")
    assert stored is not None and stored.outcome is Outcome.JUDGE_FAULT
    assert shard.accepted_submit(LABEL) is None
    shard.record(origin(idempotency_key="k"), report("retry", outcome=Outcome.WRONG))
    stored = shard.find_key(LABEL, Kind.SUBMIT, "k")
    assert stored is not None and stored.grade_id == "retry"
    assert shard.accepted_submit(LABEL) == "retry"


def test_a_harvested_grade_is_an_accepted_submit(shard: Shard) -> None:
    shard.record(origin(kind=Kind.SCORE), report("score"))
    assert shard.accepted_submit(LABEL) is None
    shard.record(origin(kind=Kind.HARVESTED, attempt=2), report("harvested"))
    assert shard.accepted_submit(LABEL) == "harvested"


def test_the_source_of_a_grade_is_found(shard: Shard) -> None:
    shard.record(origin(kind=Kind.SCORE), report("g2"))
    source = shard.grade_source("g2")
    assert source is not None and (source.name, source.content) == ("axpy.c", b"void axpy(); // g2")
    assert shard.grade_source("g3") is None


def test_what_is_no_number_becomes_null(shard: Shard, path: Path) -> None:
    shard.record(origin(), report("g1", provenance={"spread": float("nan"), "bound": [float("inf")]}))
    with sqlite3.connect(path) as connection:
        (text,) = connection.execute("SELECT provenance FROM grades").fetchone()
    assert json.loads(text, parse_constant=pytest.fail) == {"spread": None, "bound": [None]}


def test_a_seed_is_revealed_only_on_request(shard: Shard, path: Path) -> None:
    shard.record(origin(), report("g1"))
    shard.record(origin(None), report("g2", None), reveal=b"\x01\x02")
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT * FROM reveals").fetchall() == [("g2", "0102")]


def test_threads_share_a_shard(shard: Shard) -> None:
    def record(worker: int) -> None:
        for number in range(5):
            shard.record(origin(), report(f"{worker}-{number}"))

    threads = [threading.Thread(target=record, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(shard.answer(f"{worker}-{number}") for worker in range(4) for number in range(5))


def test_processes_share_an_ad_hoc_database(path: Path) -> None:
    code = """
from pathlib import Path
from results_rows import origin, report
from bench.results.shard import Shard
with Shard.open(Path(sys.argv[1]), "adhoc", 0, shared=True) as shard:
    print("ready", flush=True)
    sys.stdin.read()
    for number in range(8):
        shard.record(origin(None), report(f"{sys.argv[2]}-{number}", None))
"""
    writers = [child(code, path, name) for name in "ab"]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.close()
    assert [writer.wait() for writer in writers] == [0, 0]
    with read_only(path) as reader:
        assert all(reader.answer(f"{name}-{number}") for name in "ab" for number in range(8))
    for writer in writers:
        assert writer.stdout is not None
        writer.stdout.close()


def foreign(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE other (x)")


def newer(path: Path) -> None:
    Shard.open(path, "7", 0).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")


def cut_short(path: Path) -> None:
    Shard.open(path, "7", 0).close()
    os.truncate(path, 8192)


REFUSALS = {
    "another-rank": (lambda path: Shard.open(path, "7", 1).close(), "the shard of job 7 rank 1, not of job 7 rank 0"),
    "another-job": (lambda path: Shard.open(path, "8", 0).close(), "the shard of job 8 rank 0"),
    "merged": (lambda path: merge(path, []), "a merged database, not a shard"),
    "another-program": (foreign, "a database of another program"),
    "newer": (newer, "its schema is version 99, this Kernelcourt reads version 4"),
    "text": (lambda path: path.write_text("not a database, surely" * 40), "this is not a results database"),
    "cut-short": (cut_short, "damaged"),
    "folder": (lambda path: path.mkdir(), "a folder; name a database in it"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_wrong_file_is_refused_by_name(path: Path, case: str) -> None:
    spoil, message = REFUSALS[case]
    spoil(path)
    with pytest.raises(ShardError, match=message) as refused:
        Shard.open(path, "7", 0)
    assert str(path) in str(refused.value)
    assert not path.with_name("rank-0.db.lock").exists()


def test_an_empty_file_becomes_a_shard_and_is_none_before(path: Path) -> None:
    path.touch()
    with pytest.raises(ShardError, match="an empty file"):
        read_only(path)
    Shard.open(path, "7", 0).close()
    read_only(path).close()


def test_a_missing_shard_cannot_be_read(path: Path) -> None:
    with pytest.raises(ShardError, match=f"{path}: unable to open"):
        read_only(path)
    assert not path.exists()


def test_a_setup_has_one_definition(path: Path) -> None:
    Shard.open(path, "7", 0, SETUPS).close()
    other = {"demo-gold-c": SetupRecord(setup="demo-gold-c", preset="M", model="other")}
    with pytest.raises(ShardError, match=r"demo-gold-c.*model is 'other', elsewhere ''"):
        Shard.open(path, "7", 0, other)


def test_a_grade_of_an_unknown_setup_is_refused(shard: Shard) -> None:
    with pytest.raises(ShardError, match=r"'demo-else-c'.*it serves demo-gold-c, demo-noop-c"):
        shard.record(origin("demo-else-c.n0.p0.w0"), report("g1"))


@pytest.mark.parametrize("folder", ["/proc", "/proc/none"], ids=["unwritable", "cannot-be-made"])
def test_a_folder_that_takes_no_file_is_named(folder: str) -> None:
    with pytest.raises(ShardError, match=rf"{folder}/rank-0.db.*make|choose"):
        Shard.open(Path(folder) / "rank-0.db", "7", 0)


FULL = """
import resource
from pathlib import Path
from results_rows import LABEL, SETUPS, origin, report
from bench.errors import ShardError
from bench.results.shard import Shard
path = Path(sys.argv[1])
with Shard.open(path, "7", 0, SETUPS) as shard:
    shard.record(origin(), report("g1"))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, hard))
    try:
        shard.record(origin(), report("g2", provenance={"log": "x" * 100_000}))
    except ShardError as error:
        assert str(path) in str(error) and "disk" in str(error), error
    else:
        raise SystemExit("nothing was refused")
    assert shard.answer("g1") and not shard.answer("g2")
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert shard.record(origin(), report("g2"))
print("ready", flush=True)
"""


def test_a_full_disk_refuses_one_grade_and_loses_none(path: Path) -> None:
    kill(child(FULL, path))
    with read_only(path) as reader:
        assert reader.answer("g1") and reader.answer("g2")
