"""The measuring process: one JSON object a line, faults that end nothing, and an end that takes its runners along."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kernels import HONEST_C, LOOP, TWICE_FILES, axpy_c, court, order, reached, write_kernel
from living import ended, family

from bench.build.toolchain import recorded_toolchains, shipped_toolchains
from bench.config import JudgeConfig
from bench.errors import EnvironmentFault, JudgeFault
from bench.judge.schemas import Language, Outcome
from bench.records import GradeOrder, GradeReport
from bench.worker import self_grade

WORKER = [sys.executable, "-m", "bench.worker"]
# Starts a command on its own pipes and waits for it: a judge that can be killed.
PARENT = [sys.executable, "-c", "import subprocess, sys; subprocess.run(sys.argv[1:])"]


class Talk:
    """A measuring process's end of the line."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdin is not None and process.stdout is not None
        self.process, self._ask, self._said = process, process.stdin, process.stdout

    def read(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._said.readline())
        assert len(found) == 1
        return found

    def say(self, line: str) -> None:
        self._ask.write(line + "\n")
        self._ask.flush()

    def answer(self, line: str) -> dict[str, Any]:
        self.say(line)
        return self.read()

    def report(self, asked: GradeOrder) -> GradeReport:
        return GradeReport.model_validate(self.answer(json.dumps({"order": asked.model_dump(mode="json")}))["report"])


@contextmanager
def started(folder: Path, argv: list[str], **settings: Any) -> Iterator[Talk]:
    config = JudgeConfig(
        **{"shard": folder / "x.db", "log_dir": folder, "cache_dir": folder, "allow_sandbox": "limits"} | settings
    )
    path = folder / "judge.json"
    path.write_text(config.model_dump_json())
    with (folder / "errors.log").open("w") as errors:
        process = subprocess.Popen(
            [*argv, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
        )
    try:
        yield Talk(process)
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Talk]:
    with started(tmp_path_factory.mktemp("worker"), WORKER) as talk:
        ready = talk.read()["ready"]
        assert ready == {
            "sandbox": reached(),
            "device": "cpu",
            "device_name": "",
            "cores": {"timing": list(court().cores.timing), "clock": court().cores.clock},
        }
        yield talk


def test_an_order_gets_its_report(worker: Talk) -> None:
    asked = order(HONEST_C, grade_id="my-grade")
    report = worker.report(asked)
    assert (report.grade_id, report.outcome) == ("my-grade", Outcome.SOLVED)
    assert {source.role for source in report.sources} >= {"submission", "manifest"}


@pytest.mark.parametrize(
    "line",
    [
        "",
        "not json",
        "[]",
        "7",
        '{"order": {}}',
        '{"other": 1}',
        json.dumps({"order": order(HONEST_C).model_dump(mode="json") | {"colour": "red"}}),
        json.dumps({"order": order(HONEST_C).model_dump(mode="json") | {"source": "\ud800"}}),
        json.dumps({"order": order(HONEST_C).model_dump(mode="json") | {"source": None}}),
        json.dumps({"order": order(HONEST_C).model_dump(mode="json") | {"seed": "no hex"}}),
        json.dumps({"order": order(HONEST_C, kernel="nobody").model_dump(mode="json")}),
        json.dumps({"order": order(HONEST_C, protocol="mw1x1").model_dump(mode="json")}),
    ],
    ids=[
        *("empty", "text", "list", "number", "no-order", "other", "unknown-field", "surrogate", "no-source", "seed"),
        *("kernel", "protocol"),
    ],
)
def test_a_bad_line_is_a_fault_and_the_next_order_works(worker: Talk, line: str) -> None:
    assert worker.answer(line)["fault"]
    assert worker.report(order("void axpy(")).outcome is Outcome.BUILD_FAILED


def test_a_nan_travels(worker: Talk) -> None:
    report = worker.report(order(axpy_c(f"{LOOP} out[0] = NAN;")))
    assert report.outcome is Outcome.WRONG and report.detail["output"] == "out"


def test_what_a_submission_prints_is_not_on_the_line(worker: Talk) -> None:
    forged = 'puts("{\\"report\\": {\\"outcome\\": \\"solved\\"}}"); fflush(stdout);'
    assert worker.report(order(axpy_c(forged))).outcome is Outcome.WRONG


def test_no_child_outlives_its_grade(worker: Talk) -> None:
    worker.report(order(axpy_c("if (!fork()) { setsid(); if (!fork()) pause(); _exit(0); } abort();")))
    assert ended([child.pid for child in family(worker.process.pid)])


def test_the_end_of_its_input_ends_it(tmp_path: Path) -> None:
    with started(tmp_path, WORKER) as talk:
        assert "ready" in talk.read()
        talk.process.communicate(timeout=120)
        assert talk.process.returncode == 0


@pytest.mark.parametrize("broken", ["baseline.c", "reference.py"])
def test_a_judge_that_fails_its_own_baseline_is_unfit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    spoilt = TWICE_FILES[broken].replace("2 * x", "3 * x")
    write_kernel(tmp_path, files=TWICE_FILES | {broken: spoilt})
    monkeypatch.setenv("KCOURT_TASKS_DIR", str(tmp_path))
    with started(tmp_path, WORKER) as talk:
        why = talk.read()["unfit"]
        assert "the judge's own twice (baseline.c) is wrong, not solved: values, output out, index " in why
        assert "{" not in why
        assert talk.process.wait(120) == 3


@pytest.mark.parametrize(
    ("settings", "tasks", "says"),
    [
        ({"allow_sandbox": "full"}, None, "say --allow-sandbox limits"),
        ({}, "empty", "selects no kernel"),
    ],
    ids=["sandbox", "corpus"],
)
def test_a_judge_that_cannot_grade_is_unfit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], tasks: str | None, says: str
) -> None:
    monkeypatch.setenv("KCOURT_SANDBOX", "limits")
    if tasks:
        monkeypatch.setenv("KCOURT_TASKS_DIR", str(tmp_path / tasks))
    with started(tmp_path, WORKER, **settings) as talk:
        assert says in talk.read()["unfit"]
        assert talk.process.wait(120) != 0


def test_a_judge_of_a_language_without_its_compiler_is_unfit() -> None:
    elsewhere = shipped_toolchains().replace(b"compiler: g++", b"compiler: no-such-g++")
    with recorded_toolchains(elsewhere), pytest.raises(EnvironmentFault) as unfit:
        self_grade(court(), [Language.C, Language.CPP, Language.PYTHON])
    assert "a setup is written in cpp: the compiler 'no-such-g++' was not found" in str(unfit.value)


def test_a_killed_parent_takes_worker_and_runner_along(tmp_path: Path) -> None:
    with started(tmp_path, [*PARENT, *WORKER]) as talk:
        assert "ready" in talk.read()
        (measuring,) = family(talk.process.pid, recursive=False)
        talk.say(json.dumps({"order": order(axpy_c("for (volatile int i = 0;; i++);")).model_dump(mode="json")}))
        while not (runners := [child.pid for child in family(measuring.pid, "axpy")]):
            time.sleep(0.01)
        os.kill(talk.process.pid, signal.SIGKILL)
        assert ended([measuring.pid, *runners])


@pytest.mark.parametrize(("languages", "fit"), [([Language.C], True), ([Language.C, Language.PYTHON], False)])
def test_a_judge_grades_a_reference_of_every_language_of_its_setups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, languages: list[Language], fit: bool
) -> None:
    stopped = "def twice(x, out, n):\n    raise OSError('no such device')\n"
    write_kernel(tmp_path, files=TWICE_FILES | {"controls/honest_numpy.py": stopped})
    monkeypatch.setenv("KCOURT_TASKS_DIR", str(tmp_path))
    unfit = pytest.raises(JudgeFault, match=r"the judge's own twice \(honest_numpy.py\) is crashed, .*no such device")
    with contextlib.nullcontext() if fit else unfit:
        self_grade(court(), languages)
