"""Signals that a scheduler sends to every process of a rank at once: they end the rank, and spoil no grade."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import httpx
import pytest
from judge_rank import PATIENCE_S, Rank, rank, wait_for
from kernels import LOOP, axpy_c
from living import ended, family

from bench import process
from bench.sandbox import Level, Means, Sandbox, scratch_folder, why_not

LABEL = "solo.n0.p0.w0"
# A call of some ten milliseconds, without sleeping: a thread that leaves its core is measured again.
SLOW_TO_RUN = axpy_c(f"for (volatile long spin = 0; spin < 8000000; spin++); {LOOP}")
# Thousands of statements that are one chain.
SLOW_TO_BUILD = axpy_c(
    f"if (n < 0) out[0] = chained(n); {LOOP}",
    "#define A x = x * 3 + (x >> 7);\n#define B A A A A A A A A\n#define C B B B B B B B B\n"
    "#define D C C C C C C C C\nstatic uint64_t chained(uint64_t x) { D D D return x; }",
)
WARNINGS = (signal.SIGUSR1, signal.SIGUSR2)
# So that what is stopped hears of its end: runners are, while their library is compiled and between calls.
ENDING = (signal.SIGTERM, signal.SIGCONT)


def strike(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def whole_family(running: Rank) -> list[int]:
    """Every process of a rank, the judge and its own before the router."""
    return [*(one.pid for one in family(running.process.pid)), running.process.pid]


def wait_for_family(running: Rank, word: str) -> None:
    """Wait until a process with that word among its arguments is there."""
    deadline = time.monotonic() + PATIENCE_S
    while not family(running.process.pid, word):
        assert time.monotonic() < deadline, f"nobody came who was called with {word}"
        time.sleep(0.002)


def rows(running: Rank) -> list[tuple[str, str]]:
    """Kind and outcome of every grade in the shard."""
    with contextlib.closing(sqlite3.connect(running.shard)) as shard:
        return shard.execute("SELECT kind, outcome FROM grades").fetchall()


def started_judges(running: Rank) -> int:
    return (running.folder / "logs" / "router-0.log").read_text().count('"judge_started"')


def asking(running: Rank, source: str, answers: list[httpx.Response]) -> threading.Thread:
    """A thread that submits, and leaves the answer in `answers`."""
    body = {"kernel": "axpy", "source": source}
    thread = threading.Thread(target=lambda: answers.append(running.post("/submit", body, LABEL)))
    thread.start()
    return thread


MOMENTS = {
    "while-it-runs": (SLOW_TO_RUN, "axpy", None),
    "while-it-runs-without-walls": (SLOW_TO_RUN, "axpy", "limits"),
    "while-it-is-built": (SLOW_TO_BUILD, "axpy.c", None),
}


@pytest.mark.timing  # it must be solved while it is struck all the time: beside other graders no moment is quiet enough
@pytest.mark.parametrize(("source", "word", "cap"), MOMENTS.values(), ids=MOMENTS)
def test_a_grade_in_flight_outlives_the_end_of_its_rank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, word: str, cap: str | None
) -> None:
    if cap:
        monkeypatch.setenv("KCOURT_SANDBOX", cap)
    settings: dict[str, Any] = {"allow_sandbox": "limits", "warm_up": False}
    with rank(tmp_path, closed=True, measures=True, **settings) as running:
        answers: list[httpx.Response] = []
        submitting = asking(running, source, answers)
        wait_for_family(running, word)
        everybody = whole_family(running)
        for number in (*WARNINGS, *ENDING):
            strike(everybody, number)
        (judge,) = family(running.process.pid, recursive=False)
        (worker,) = family(judge.pid, recursive=False)
        while submitting.is_alive():  # what starts later must not end by it either
            for number in ENDING:
                strike([worker.pid, *(one.pid for one in family(worker.pid))], number)
            submitting.join(0.02)
        assert running.process.wait(PATIENCE_S) == 0
        assert (answers[0].status_code, answers[0].json()["outcome"]) == (200, "solved"), answers[0].text
        assert rows(running) == [("submit", "solved")]
        assert ended(everybody)
        assert started_judges(running) == 1


def test_a_router_whose_judge_was_told_first_starts_no_other(tmp_path: Path) -> None:
    with rank(tmp_path) as running:
        judge = running.judge()
        judge.terminate()
        assert ended([judge.pid])
        assert running.stop() == 0
        assert started_judges(running) == 1


def test_a_judge_that_was_told_alone_is_started_again(tmp_path: Path) -> None:
    with rank(tmp_path) as running:
        judge = running.judge()
        judge.terminate()
        assert ended([judge.pid])
        running.wait_until_healthy()
        assert running.judge().pid != judge.pid


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_what_ends_router_and_judge_leaves_the_grade_in_flight_its_answer(
    tmp_path: Path, number: signal.Signals
) -> None:
    go = tmp_path / "go"
    with rank(tmp_path, closed=True) as running:
        answers: list[httpx.Response] = []
        submitting = asking(running, f"// fake: wait {go}", answers)
        wait_for(Path(f"{go}.reached"))
        strike([running.judge().pid, running.process.pid], number)
        go.touch()
        submitting.join(PATIENCE_S)
        assert answers[0].json()["outcome"] == "solved"
        assert running.process.wait(PATIENCE_S) == 0
        assert (rows(running), started_judges(running)) == ([("submit", "solved")], 1)


LIVES_ON = "process.ignore_stops(); print(sys.stdin.readline())"
HEARS = "signal.signal(15, lambda *_: print('heard')); process.let_stops_in()"


@pytest.mark.parametrize(("code", "says"), [(LIVES_ON, "go on"), (HEARS, "heard")], ids=["ignores", "lets-in"])
def test_a_child_that_holds_stops_is_not_ended_while_it_starts(code: str, says: str) -> None:
    script = f"import signal, sys; sys.stdin.readline(); from bench import process; {code}"
    child = process.spawn(
        [sys.executable, "-c", script], output=subprocess.PIPE, stdin=subprocess.PIPE, holds_stops=True
    )
    child.send_signal(signal.SIGTERM)
    said, _ = child.communicate(b"begin\ngo on\n", PATIENCE_S)
    assert (child.returncode, said.decode().strip()) == (0, says)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) & process.STOPS == set(), "our own mask is as it was"


WALLS = [Sandbox(Level.LIMITS)]
WALLS += [Sandbox(level, means=means) for level in (Level.USER, Level.FULL) for means in Means]

# Runs a command in a sandbox, as a measuring process does, and says how it ended.
MEASURING = (
    "from pathlib import Path; from bench import process; from bench.process import Limits;"
    "from bench.sandbox import Level, Means, Sandbox; process.ignore_stops();"
    "way = Sandbox(Level.{level}, means=Means.{means});"
    "done = way.run({argv}, Limits(wall_s=300), Path('{folder}')); print(done.returncode, done.output)"
)


@pytest.mark.parametrize("wall", WALLS, ids=lambda wall: f"{wall.level}-{wall.means}")
def test_no_wall_is_torn_down_by_a_signal(wall: Sandbox) -> None:
    if wall.level is not Level.LIMITS and (why := why_not(wall.level, wall.means)):
        pytest.skip(why)
    with scratch_folder() as folder:
        argv = ["sh", "-c", "until [ -e go ]; do sleep 0.02; done; echo whole"]
        script = MEASURING.format(level=wall.level.name, means=wall.means.name, argv=argv, folder=folder)
        measuring = process.spawn([sys.executable, "-c", script], output=subprocess.PIPE, holds_stops=True)
        while not family(measuring.pid, "sleep"):
            assert measuring.poll() is None
        for number in process.STOPS:
            strike([measuring.pid, *(one.pid for one in family(measuring.pid))], number)
        (folder / "go").touch()
        said, _ = measuring.communicate(timeout=PATIENCE_S)
        assert said.decode().split() == ["0", "whole"]
