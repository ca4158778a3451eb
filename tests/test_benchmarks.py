"""`make bench`: what it is told, what its JSON holds, and that the benchmarks which grade run at their smallest."""

import sys
from typing import Any

import pytest
from conftest import REPOSITORY, Ran, run_program


def python(*arguments: str) -> Ran:
    """Python in the checkout, as `make bench` calls it."""
    return run_program(sys.executable, *arguments)


def value(module: str, expression: str) -> Any:
    """What an expression over a module of the benchmarks gives, through JSON."""
    ran = python(
        "-c", f"import json; from tests.benchmarks import {module}_bench as it; print(json.dumps({expression}))"
    )
    assert ran.code == 0, ran.err
    return ran.json


def test_every_benchmark_can_be_imported() -> None:
    names = sorted(path.stem for path in (REPOSITORY / "tests" / "benchmarks").glob("*_bench.py"))
    ran = python("-c", f"from tests.benchmarks import {', '.join(names)}")
    assert names and ran.code == 0, ran.err


def test_an_unknown_benchmark_is_named_with_the_known_ones() -> None:
    ran = python("-m", "tests.benchmarks", "nosuch")
    assert ran.code == 1
    assert ran.err.startswith("error: no benchmark nosuch; there are cli_bench, driver_bench, judge_bench, merge_bench")


def test_thirty_right_submissions_of_all_kernels_are_regraded() -> None:
    chosen = value("regrade", "[(kernel, path.name) for kernel, path in it.submissions()]")
    assert len(chosen) == 30 and len({kernel for kernel, _ in chosen}) == 16
    assert {name.partition("_")[0] for _, name in chosen} == {"fast", "honest"}


def test_a_grade_is_timed_and_its_stages_told() -> None:
    (found,) = value("throughput", "it.measure(['axpy'], it.Preset.S, grades=1)")
    assert found["name"] == "grades of axpy at S (mw4x5)" and found["n"] == 1
    assert found["value"] == pytest.approx(3600 / found["grade_s"])
    assert {"build", "kernel", "oracle", "values", "total"} <= set(found["stages_ms"])
    assert found["stages_ms"]["total"] / 1e3 <= found["grade_s"]


def test_regrades_are_held_against_their_grades() -> None:
    found = value("regrade", "it.measure(2, it.Preset.S)")
    assert [(row["name"].rpartition(" ")[2], row["goal"]) for row in found] == [
        ("p50", None),
        ("p90", 5),
        ("p100", None),
    ]
    (each,) = [row["each"] for row in found if "each" in row]
    assert [(row["kernel"], row["file"]) for row in each] == [("axpy", "fast_streaming.c"), ("sgemm", "fast_packed.c")]
    for row in each:
        assert row["apart_percent"] == pytest.approx(abs(row["now"] / row["then"] - 1) * 100)
    assert found[-1]["value"] == pytest.approx(max(row["apart_percent"] for row in each))


def test_a_driver_stays_small_and_flat_over_its_episodes() -> None:
    memory, growth, seconds = value("driver", "it.measure(episodes=12, workers=4)")
    assert 0 < memory["value"] <= memory["goal"] == 40
    assert growth["value"] <= growth["goal"]
    assert seconds["value"] > 0


def test_a_judge_keeps_nothing_of_the_grades_it_has_made() -> None:
    growth, memory, files = value("judge", "it.measure(grades=8, first=4)")
    assert memory["value"] > 0 and growth["value"] <= growth["goal"] == 10
    assert files["value"] == files["goal"] == 0
