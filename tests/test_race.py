"""Several baselines race: the fastest is the denominator, and the row says how fast each was."""

import pytest
from kernels import TWICE, TWICE_FILES, court, order, write_kernel

from bench.errors import TaskError
from bench.grade import grade
from bench.judge.schemas import Outcome
from bench.task import load_task

SLOW = TWICE_FILES["baseline.c"].replace(
    "{ for", "{ for (volatile int64_t spent = 0; spent < 50 * n; spent++) {}\n  for"
)


@pytest.fixture
def two(tmp_path):
    """A kernel whose first baseline is slow."""
    files = TWICE_FILES | {"baseline.c": SLOW, "plain.c": TWICE_FILES["baseline.c"]}
    return load_task(write_kernel(tmp_path, TWICE | {"baselines": ["baseline.c", "plain.c"]}, files))


def graded(task, **changes):
    source = TWICE_FILES["controls/honest_sum.c"]
    return grade(order(source, kernel="twice", **changes), court(), task)


def test_the_fastest_baseline_is_the_denominator(two):
    found = graded(two)
    assert found.outcome is Outcome.SOLVED, (found.detail, found.log)
    assert found.denominator == found.provenance["denominator"]["name"] == "plain.c"
    times = found.provenance["race_ns"]
    assert times.keys() == {"baseline.c", "plain.c"}
    assert times["baseline.c"] > times["plain.c"] > 0
    assert {source.role for source in found.sources} >= {"baseline:baseline.c", "baseline:plain.c"}


def test_a_baseline_against_itself_does_not_race(two):
    found = graded(two, protocol="mw4x5-aa")
    assert (found.outcome, found.denominator) == (Outcome.SOLVED, "baseline.c")
    assert "race_ns" not in found.provenance


def test_a_baseline_that_answers_wrongly_is_the_judges_fault(tmp_path):
    files = TWICE_FILES | {"other.c": TWICE_FILES["baseline.c"].replace("2 *", "3 *")}
    task = load_task(write_kernel(tmp_path, TWICE | {"baselines": ["baseline.c", "other.c"]}, files))
    found = graded(task)
    assert found.outcome is Outcome.JUDGE_FAULT
    assert "the denominator of twice failed" in found.detail["message"]


def test_a_declared_baseline_that_is_not_there_is_named(tmp_path):
    folder = write_kernel(tmp_path, TWICE | {"baselines": ["baseline.c", "other.c"]})
    with pytest.raises(TaskError, match=r"the kernel lacks other\.c"):
        load_task(folder)
