"""The figures of a GPU: their statistics, their parts on a GPU that the CPU plays, and the file that a run leaves."""

import json
import shutil
import sys
import time
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import run_program
from gpu_figures import device_parts, grade_parts
from gpu_figures.__main__ import options
from gpu_figures.figures import Deadline, allotment, gathered, missing, most_by_chance, percent_off, single, spread
from gpu_figures.slot import PLAYED, Slot, built
from hypothesis import given
from hypothesis import strategies as st
from played import played_court
from scipy import stats

from bench.judge.schemas import Outcome
from bench.task import find_task
from bench.verdict import Rejected

needs_a_compiler = pytest.mark.skipif(not shutil.which("g++"), reason="g++ is not installed")


# Statistics


@given(st.integers(1, 400), st.floats(0.01, 0.9))
def test_so_many_hits_are_no_surprise_and_one_more_is(of: int, rate: float) -> None:
    most = most_by_chance(of, rate)
    p = [stats.binomtest(hits, of, rate, alternative="greater").pvalue for hits in (most, min(most + 1, of))]
    assert p[0] >= 0.05 * (1 - 1e-9)
    assert most == of or p[1] < 0.05 * (1 + 1e-9)


@given(st.lists(st.floats(1, 1e9), min_size=1, max_size=50))
def test_a_spread_is_in_order_and_counts_its_values(values: list[float]) -> None:
    found = spread("x", values, "ns")["figure"]
    assert found["low"] <= found["value"] <= found["high"] and found["n"] == len(values)


@pytest.mark.parametrize(("value", "met"), [(0.9, True), (1.0, True), (1.1, False)])
def test_a_goal_is_an_upper_bound(value: float, met: bool) -> None:
    assert single("x", value, "us", goal=1.0)["figure"]["met"] is met
    assert single("x", value, "us")["figure"]["met"] is None


def test_what_is_too_fast_is_as_far_off_as_what_is_too_slow() -> None:
    assert percent_off(97, 100) == pytest.approx(3) == percent_off(103, 100)


def test_time_that_a_part_leaves_over_goes_to_the_others() -> None:
    weights, left = [1.0, 2.0, 1.0], 400.0
    assert allotment(left, weights) == 100
    assert allotment(left - 10, weights[1:]) == 260
    assert allotment(-5, weights) == 0


def test_a_part_without_time_does_one_turn_and_says_so() -> None:
    late, early = Deadline(time.monotonic() - 1), Deadline.within(100)
    assert [*late.turns(5, "grades")] == [0]
    assert late.cut == ["grades: stopped after 1 of 5, for lack of time"]
    assert [*early.turns(3, "grades")] == [0, 1, 2] and early.cut == []


def test_lines_become_one_object() -> None:
    lines = [
        {"before": {"mhz": 1}},
        {"figure": {"name": "a"}},
        {"each": {"b": 2}},
        {"missing": "c"},
        {"facts": {"d": 4}},
    ]
    found = gathered(lines)
    assert found["figures"] == [{"name": "a"}] and found["each"] == [{"b": 2}] and found["missing"] == ["c"]
    assert found["facts"] == {"before": {"mhz": 1}, "d": 4}


def test_what_is_missing_is_told_with_the_message_and_the_log() -> None:
    error = Rejected(Outcome.BUILD_FAILED, "build", {"message": "it does not compile"}, "line 3:\n  no such name")
    told = missing("axpy", error)["missing"]
    assert told.startswith("axpy: ") and told.endswith("it does not compile line 3: no such name")


# Parts, on a GPU that is played


@cache
def part(measure: Any) -> dict[str, Any]:
    """What a part finds on the played device."""
    return gathered([*measure(Slot(played_court(), PLAYED, Deadline.within(600)))])


@needs_a_compiler
@pytest.mark.parametrize(
    ("measure", "names"),
    [
        (device_parts.copy, ["copy, read and written"]),
        (
            device_parts.empty,
            [
                "empty call, p10",
                "empty call, p99",
                "waking it, and the device's switch to it, which the judge used last",
            ],
        ),
        (
            device_parts.clocks,
            [
                "calls of about 5 us: judge's clock less the device's",
                "calls of about 50 us: device's events",
                "judge's clock less the device's: largest less smallest of the medians",
            ],
        ),
        (grade_parts.ladder, ["known ratio 2 at S: found", "known ratio 2 at S: median off by"]),
        (grade_parts.against_itself, ["A/A at S: inputs credited", "A/A at S: |S - 1|, p95"]),
        (grade_parts.grade_cost, ["overhead of a grade of axpy at S", "grades at S"]),
        (grade_parts.roofline, ["axpy at S: share of the copy's bandwidth"]),
        (grade_parts.builds, ["building ahead, all kernels together"]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_part_finds_its_figures(measure: Any, names: list[str]) -> None:
    found = part(measure)
    assert found["missing"] == []
    figures = {figure["name"]: figure for figure in found["figures"]}
    assert figures.keys() >= set(names)
    assert all(np.isfinite(figure["value"]) and figure["n"] > 0 for figure in figures.values())
    json.dumps(found, allow_nan=False)


@needs_a_compiler
def test_percentiles_of_the_empty_call_ascend() -> None:
    values = [figure["value"] for figure in part(device_parts.empty)["figures"]]
    assert all(a <= b for a, b in pairwise(values[:4]))


@needs_a_compiler
def test_the_stages_of_a_grade_and_its_kernels_are_told() -> None:
    found = part(grade_parts.grade_cost)
    assert {"build", "kernel", "oracle", "total"} <= set(found["figures"][0]["stages_ms"])
    assert [row["kernel"] for row in found["each"]] == ["axpy"]


@needs_a_compiler
def test_the_library_that_is_timed_is_called_with_the_kernels_own_arguments() -> None:
    """By addresses of the device, which for a played one are this process's own."""
    task = find_task("axpy").gpu_track
    x, y, out = np.arange(300, dtype=np.float32), np.ones(300, np.float32), np.zeros(300, np.float32)
    values = {"x": x.ctypes.data, "y": y.ctypes.data, "out": out.ctypes.data, "n": 300, "a": 0.5}
    library = built(played_court(), task, task.baselines[0]).path
    device_parts.library_call(task, library, values, 0)()
    assert np.array_equal(out, 0.5 * x + y)


# The command


def run(out: Path, *arguments: str) -> Any:
    return run_program(sys.executable, "-m", "tests.gpu_figures", "--out", out, *arguments)


def test_without_a_gpu_the_reason_is_in_the_file(tmp_path: Path) -> None:
    if shutil.which("nvidia-smi"):
        pytest.skip("there is a GPU here")
    out = tmp_path / "new" / "gpu.json"
    ran = run(out, "--parts", "facts", "--minutes", "1")
    found = json.loads(out.read_text())
    assert ran.code == 0 and found["parts"]["facts"]["figures"] == []
    assert "no GPU of NVIDIA was found" in found["parts"]["facts"]["missing"][0]
    assert "MISSING the rest, for its process left with 1: error: no GPU of NVIDIA" in ran.out
    assert found["command"] == "python -m tests.gpu_figures --out gpu.json --parts facts --minutes 1"


@needs_a_compiler
def test_a_part_that_cannot_be_measured_is_no_reason_to_stop(tmp_path: Path) -> None:
    out = tmp_path / "gpu.json"
    ran = run(out, "--device", "played", "--parts", "profilers,facts", "--commit", "abc")
    found = json.loads(out.read_text())
    assert [*found["parts"]] == ["facts", "profilers"], ran.err
    assert found["parts"]["facts"]["facts"]["name"] == "emulated"
    assert found["versions"]["commit"] == "abc"
    assert shutil.which("ncu") or "skipped: ncu is not here" in found["parts"]["profilers"]["missing"][0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--out", "x", "--parts", "clocks,nosuch"], "no part nosuch; there are facts, copy, matrix"),
        (["--parts", "clocks"], "--out is missing: the file that the figures go to"),
    ],
    ids=["an unknown part", "no file"],
)
def test_what_is_asked_wrongly_is_told(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        options(arguments)
    assert ended.value.code == 2 and words in capsys.readouterr().err


def test_nothing_but_what_grades_need_is_imported() -> None:
    blocked = ("pytest", "hypothesis", "httpx", "sqlalchemy", "scipy", "fastapi", "torch", "triton")
    ran = run_program(
        sys.executable,
        "-c",
        f"import sys; sys.modules.update(dict.fromkeys({blocked!r})); import tests.gpu_figures.__main__",
    )
    assert ran.code == 0, ran.err
