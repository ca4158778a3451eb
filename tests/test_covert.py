"""What a submission can tell to whoever sent it is worth nothing for the next one, and a failure tells one word."""

import contextlib
import json
import math
import re
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest
from covert import (
    ALPHA,
    FIRST,
    KERNEL_OF,
    LEAST_CALLS,
    OTHER_KERNEL,
    STEP_S,
    attack,
    source,
    table,
    victim,
)
from judge_rank import GOOD, Rank, rank

# Where a kernel fails: at the first of all calls, at the last size of all, in between, and on a twin there.
PLACES = {
    "first-call": "call == 0",
    "first-timed": "is_new && inputs == 1",
    "last-timed": "is_new && inputs == 4",
    "first-held-out": "is_new && inputs == 5",
    "last-held-out": "is_new && inputs == 8",
    "last-twin": "inputs == 8 && !is_new",
}
WRONG = "out[0] = 9e9f;"


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rank]:
    with victim(tmp_path_factory.mktemp("covert")) as running:
        yield running


@dataclass(frozen=True)
class Timed:
    """An answer, when it came, and what the shard says of the time that its grade took."""

    answer: httpx.Response
    took_s: float
    waited_s: float
    graded_s: float

    @property
    def late_s(self) -> float:
        """By how much it came after the next multiple of the step."""
        return self.took_s - self.waited_s - math.ceil(self.graded_s / STEP_S) * STEP_S


def submitted(judge: Rank, body: str, label: str = FIRST) -> Timed:
    kernel = KERNEL_OF[label]
    began = time.monotonic()
    answer = judge.post("/submit", {"kernel": kernel, "source": source(kernel, body)}, label)
    took_s = time.monotonic() - began
    with contextlib.closing(sqlite3.connect(judge.shard)) as shard:
        (times,) = shard.execute(
            "SELECT queue_ms / 1e3, grade_ms / 1e3 FROM grades WHERE grade_id = ?", [answer.json()["grade_id"]]
        )
    return Timed(answer, took_s, *times)


def test_nothing_that_a_submission_tells_is_worth_anything_later(judge: Rank) -> None:
    tallies = attack(judge, LEAST_CALLS)
    shown = "\n".join(table(tallies))
    for tally in tallies:
        assert tally.could_show, f"too few calls to tell\n{shown}"
        if "how slow" not in tally.strategy:  # calls of 20 us tell little by their time on a busy machine
            assert 2 * tally.told_right > tally.told, f"the attacker is too weak: its messages are lost\n{shown}"
        assert tally.by_chance >= ALPHA, f"'{tally.strategy}' knows what it cannot know\n{shown}"


def test_wherever_a_submit_fails_its_answer_is_the_same_and_comes_at_a_round_time(judge: Rank) -> None:
    said: set[bytes] = set()
    for place, here in PLACES.items():
        # The machine may be busy for once, but not whenever we ask.
        found = [submitted(judge, f"if ({here}) {WRONG}") for _ in range(1 + (place == "first-call"))]
        assert min(abs(one.late_s) for one in found) < STEP_S / 2, (place, found)
        said |= {anonymous(one.answer) for one in found}
    assert len(said) == 1, said
    (only,) = said
    assert json.loads(only.partition(b"\n\n")[2])["detail"] == {"property": "values"}


def anonymous(answer: httpx.Response) -> bytes:
    """An answer as it came, but for the ids of grade and request."""
    head = "\n".join(f"{name}: {value}" for name, value in answer.headers.items() if name != "x-request-id")
    content = answer.content.replace(answer.json()["grade_id"].encode(), b"-")
    return f"{answer.status_code}\n{head}\n\n".encode() + content


def test_what_depends_on_no_hidden_input_is_answered_at_once(judge: Rank) -> None:
    kernel = {"kernel": "axpy", "source": "void axpy(void) { this is no C }"}
    began = time.monotonic()
    answer = judge.post("/submit", kernel, FIRST)
    took_s = time.monotonic() - began
    assert answer.json()["outcome"] == "build_failed"
    with contextlib.closing(sqlite3.connect(judge.shard)) as shard:
        ((graded_s,),) = shard.execute(
            "SELECT (queue_ms + grade_ms) / 1e3 FROM grades WHERE grade_id = ?", [answer.json()["grade_id"]]
        )
    assert took_s < graded_s + STEP_S / 2


def test_a_failed_submit_leaves_no_time_at_baseline(judge: Rank) -> None:
    kernel = KERNEL_OF[OTHER_KERNEL]
    before = judge.get(f"/baseline/{kernel}").content
    failed = submitted(judge, f"if ({PLACES['last-held-out']}) {WRONG}", OTHER_KERNEL)
    assert failed.answer.json()["outcome"] == "wrong"
    assert judge.get(f"/baseline/{kernel}").content == before


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rank]:
    """A judge with secrets whose grades take no time at all."""
    with rank(tmp_path_factory.mktemp("quick"), closed=True, failed_submit_step_s=QUICK_STEP_S) as running:
        yield running


QUICK_STEP_S = 1.5
FAILING = GOOD | {"source": "// fake: wrong"}


def grade_seconds(judge: Rank) -> float:
    found = re.search(r"^kcourt_grade_seconds_sum (\S+)$", judge.get("/metrics").text, re.MULTILINE)
    assert found
    return float(found[1])


def test_metrics_do_not_tell_how_long_a_failed_submit_took(quick: Rank) -> None:
    before = grade_seconds(quick)
    assert quick.post("/submit", FAILING, FIRST).json()["outcome"] == "wrong"
    assert grade_seconds(quick) - before == pytest.approx(QUICK_STEP_S)
