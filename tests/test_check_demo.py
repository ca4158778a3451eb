"""The check of a demo's database names every promise that is broken, and none that is kept."""

from pathlib import Path

import pytest
from check_demo import broken_promises, newest_run
from results_rows import episode, origin, report

from bench.judge.schemas import Kind, Outcome, SetupRecord
from bench.results.merge import merge
from bench.results.queries import opened
from bench.results.shard import Shard
from bench.task import select

KERNELS = [task.name for task in select("demo")]
STUMBLE = (Outcome.WRONG, Outcome.BUILD_FAILED, Outcome.CRASHED)


def demo(gold_faster=12, noop_faster=3, unsolved=(), stumbles=STUMBLE, last=Outcome.SOLVED):
    """Rows of a demo: (setup, kernel, kind, outcome, faster), in the order in which they were asked for."""
    for number, kernel in enumerate(KERNELS):
        outcome = Outcome.WRONG if kernel in unsolved else Outcome.SOLVED
        yield "gold", kernel, Kind.SUBMIT, outcome, number < gold_faster
        yield "noop", kernel, Kind.SUBMIT, Outcome.SOLVED, number < noop_faster
    for kernel in KERNELS[:3]:
        for outcome in stumbles:
            yield "stumbler", kernel, Kind.SCORE, outcome, False
        yield "stumbler", kernel, Kind.SUBMIT, last, True


def database(folder: Path, rows) -> Path:
    setups = {name: SetupRecord(setup=name) for name in ("gold", "noop", "stumbler")}
    episodes = {}
    with Shard.open(folder / "grades.db", "job", 0, setups) as shard:
        for number, (setup, kernel, kind, outcome, faster) in enumerate(rows):
            label = f"{setup}.n0.p{KERNELS.index(kernel)}.w0"
            episodes[label] = episode(label, kernel=kernel)
            at = f"2026-01-01T00:{number // 60:02}:{number % 60:02}.000+00:00"
            grade = report(f"g{number}", label, outcome=outcome, faster=faster)
            shard.record(origin(label, kind, kernel=kernel, requested_at=at), grade)
    merge(folder / "results.db", [folder / "grades.db"], list(episodes.values()))
    return folder / "results.db"


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ({}, []),
        ({"gold_faster": 8, "noop_faster": 0}, []),
        ({"gold_faster": 7}, ["gold is faster on 7 kernels, 8 are promised"]),
        ({"noop_faster": 4}, ["noop is faster on 4 kernels, at most 3 by chance"]),
        ({"unsolved": KERNELS[4:6]}, [f"gold did not solve {', '.join(sorted(KERNELS[4:6]))}"]),
        ({"stumbles": (Outcome.SOLVED,)}, [f"stumbler solved {name} before its right answer" for name in KERNELS[:3]]),
        ({"last": Outcome.WRONG}, [f"stumbler's last grade of {name} is wrong" for name in KERNELS[:3]]),
    ],
    ids=["kept", "just-kept", "gold-slow", "noop-fast", "gold-wrong", "stumbler-early", "stumbler-never"],
)
def test_each_broken_promise_is_named(tmp_path, rows, says):
    with opened([database(tmp_path, demo(**rows))]) as found:
        broken = broken_promises(found)
    assert len(broken) == len(says)
    for sentence, expected in zip(sorted(broken), sorted(says), strict=True):
        assert sentence.startswith(expected)


def test_a_demo_that_left_nothing_breaks_every_promise(tmp_path):
    with opened([database(tmp_path, [])]) as found:
        assert len(broken_promises(found)) == 3


def test_the_newest_run_is_checked(tmp_path):
    for name in ("local-20260101T000000000Z", "local-20260102T000000000Z", "adhoc"):
        (tmp_path / name).mkdir()
    assert newest_run(tmp_path).name == "local-20260102T000000000Z"
