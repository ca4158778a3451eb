"""A grade's report: what it holds, what it hides, that it repeats, and that it leaves nothing behind."""

import gc
import hashlib
import json
import os
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from kernels import (
    HONEST_C,
    HONEST_PYTHON,
    LOOP,
    TWICE_FILES,
    axpy_c,
    axpy_py,
    court,
    graded,
    on_load,
    order,
    reached,
    write_kernel,
)
from living import family

from bench import seeds
from bench.build.toolchain import toolchains
from bench.errors import UsageError
from bench.grade import grade
from bench.judge.schemas import Kind, Language, Outcome, Preset
from bench.measure.sampling import MAX_REPEATS
from bench.measure.stopwatch import WORK_STAGES
from bench.records import GradeReport
from bench.task import find_task

AXPY = find_task("axpy")
PREVIEW_INPUTS, FINAL_INPUTS, RUNS = 2, 4, 5


@pytest.fixture(scope="module")
def solved() -> GradeReport:
    return graded(HONEST_C, protocol="mw4x5", kind=Kind.SUBMIT)


def test_a_solved_grade_has_its_numbers(solved: GradeReport) -> None:
    assert solved.outcome is Outcome.SOLVED
    assert solved.score is not None and solved.score > 0
    assert solved.interval is not None and solved.raw_ratio is not None
    low, high = solved.interval
    assert 0 < low <= solved.raw_ratio <= high
    assert solved.faster == (low > 1)
    assert (solved.property, solved.detail, solved.log, solved.suspect) == (None, {}, "", None)


def test_a_cell_holds_every_pair(solved: GradeReport) -> None:
    assert [cell.index for cell in solved.cells] == list(range(FINAL_INPUTS))
    limit = AXPY.size(Preset.S)["n"]
    for cell in solved.cells:
        assert 0.75 * limit <= cell.sizes["n"] <= limit
        assert len(cell.candidate_ns) == len(cell.denominator_ns) == len(cell.order) == RUNS
        assert min(cell.candidate_ns + cell.denominator_ns) > 0
        assert set(cell.order) <= set("cd")
        assert cell.ratio == (cell.raw if cell.credited else 1)
        assert 0 < cell.p <= 1
        assert 0 <= cell.repeated <= MAX_REPEATS


def test_the_score_is_the_geometric_mean_of_the_cells(solved: GradeReport) -> None:
    product = 1.0
    for cell in solved.cells:
        product *= cell.ratio
    assert solved.score == pytest.approx(product ** (1 / FINAL_INPUTS))


def test_provenance_says_how_the_number_came_about(solved: GradeReport) -> None:
    found = solved.provenance
    assert found["build"]["commands"] == tuple(map(tuple, toolchains()["c"].steps(Path("axpy.c"), "axpy")))
    assert found["build"]["compiler"].startswith("gcc")
    assert found["cores"] == {"timing": court().cores.timing, "clock": court().cores.clock}
    assert found["clock"]["empty_candidate_ns"] > 0 and found["clock"]["empty_denominator_ns"] > 0
    assert found["machine"]["cores"] == os.cpu_count() and found["machine"]["cpu_model"]
    assert found["versions"].keys() >= {"package", "commit", "python", "numpy"} and found["versions"]["package"]
    assert found["affinity"] == sorted(os.sched_getaffinity(0))
    for state in (found["before"], found["after"]):
        assert state["load"] >= 0 and len(state["mhz"]) == len(found["cores"]["timing"])
    assert found["noise"].keys() == {"candidate", "denominator"} and min(found["noise"].values()) >= 0
    for side in ("candidate", "denominator"):
        assert found["clock"][f"offset_{side}_ns"]["p50"] <= found["clock"][f"offset_{side}_ns"]["p99"]
    baseline = hashlib.sha256(AXPY.baselines[0].read_bytes()).hexdigest()
    assert found["denominator"] == {"name": "baseline.c", "sha256": baseline}
    assert found["build"]["denominator"]["commands"][0][0] == "gcc"
    assert "-Dreal=double" in found["build"]["twin"]["commands"][0]
    assert (solved.sandbox, solved.device, solved.preset, solved.protocol) == (reached(), "cpu", Preset.S, "mw4x5")


def test_sources_hold_all_that_defines_the_grade(solved: GradeReport) -> None:
    sources = {source.role: source for source in solved.sources}
    assert set(sources) == {"submission", "manifest", "reference", "baseline:baseline.c", "toolchains"}
    assert sources["submission"].content.decode() == HONEST_C
    assert sources["submission"].name == "axpy.c"
    assert sources["baseline:baseline.c"].name == "baseline.c"
    for role, content in AXPY.files.items():
        assert sources[role].content == content
    assert solved.task_hash == AXPY.hash
    assert solved.denominator == "baseline.c"
    assert re.fullmatch("[0-9a-f]{32}", solved.policy_stamp or "")


def test_the_commitment_is_that_of_the_seed() -> None:
    seed = seeds.new_root()
    assert graded("void axpy(", seed=seed.hex()).seed_commitment == seeds.commitment(seed)


def test_stages_add_up(solved: GradeReport) -> None:
    stages = dict(solved.stages_ms)
    total = stages.pop("total")
    assert {"build", "start", "values", "oracle", "kernel", "compare", "flush", "wait"} <= set(stages)
    assert min(stages.values()) >= 0
    assert sum(stages.values()) <= total
    overhead = total - sum(spent for name, spent in stages.items() if name in WORK_STAGES)
    assert solved.overhead_ms == pytest.approx(overhead, abs=1)


def test_a_report_travels_as_json() -> None:
    for report in (graded(HONEST_PYTHON, Language.PYTHON), graded(axpy_c(f"{LOOP} out[0] = NAN;"))):
        text = json.dumps(report.model_dump(mode="json"))
        back = GradeReport.model_validate_json(text)
        assert back.sources == report.sources and back.cells == report.cells and back.outcome is report.outcome


def test_a_preview_says_what_is_wrong() -> None:
    report = graded(axpy_c(f"{LOOP} if (n > 9) out[9] = 7;"))
    detail = report.detail
    assert report.outcome is Outcome.WRONG
    assert (detail["output"], detail["index"], detail["got"], detail["count"]) == ("out", [9], 7, 1)
    assert detail["sizes"]["n"] > 9 and detail["stage"] == "verify"
    assert abs(detail["expected"] - 7) > detail["bound"] >= 0


LARGE = AXPY.size(Preset.S)["n"] + 1  # only timed inputs are as large, at M
HIDING = {
    "timed": f"{LOOP} if (n >= {LARGE}) out[n / 2] = 0;",
    "held": f"static int timed; if (n >= {LARGE}) timed = 1; {LOOP} if (timed && n < {LARGE}) out[0] += 1;",
}


@pytest.mark.parametrize("stage", HIDING)
def test_a_submission_is_checked_until_its_last_call(stage: str) -> None:
    report = graded(axpy_c(HIDING[stage]), preset=Preset.M, protocol="mw4x5", kind=Kind.SUBMIT)
    assert (report.outcome, report.property) == (Outcome.WRONG, "values")
    assert report.detail["stage"] == stage
    assert report.score is None


SECRETS = {
    "values": (axpy_c(f"{LOOP} out[n - 1] += 12345;"), Language.C, Outcome.WRONG),
    "printed": (
        axpy_c(f'{LOOP} fprintf(stderr, "x0 is %f\\n", x[0]); fflush(stderr); abort();'),
        Language.C,
        Outcome.CRASHED,
    ),
    "raised": (axpy_py("raise ValueError(str(x[:3]))"), Language.PYTHON, Outcome.CRASHED),
    "memory": (axpy_c(f"{LOOP} out[n] = 1;"), Language.C, Outcome.TAMPERED),
}


@pytest.mark.parametrize("case", SECRETS)
def test_a_submit_shows_the_property_alone(case: str) -> None:
    source, language, outcome = SECRETS[case]
    report = graded(source, language, protocol="mw4x5", kind=Kind.SUBMIT, disclose=False)
    assert report.outcome is outcome
    assert report.property
    assert (report.detail, report.log) == ({}, "")
    assert report.provenance["finding"], "the row keeps what the answer hides"


def test_a_submit_shows_the_log_of_a_failed_build() -> None:
    report = graded("void axpy(", protocol="mw4x5", kind=Kind.SUBMIT, disclose=False)
    assert report.outcome is Outcome.BUILD_FAILED
    assert "axpy.c:1" in report.log and report.detail == {}
    assert report.provenance["build"]["commands"][0][0] == "gcc", "the row says what was tried"


def test_the_same_seed_draws_the_same_sizes_and_another_seed_others() -> None:
    seed = seeds.new_root().hex()
    first, again, other = (graded(HONEST_C, seed=value) for value in (seed, seed, seeds.new_root().hex()))
    assert [cell.sizes for cell in first.cells] == [cell.sizes for cell in again.cells]
    assert [cell.sizes for cell in first.cells] != [cell.sizes for cell in other.cells]
    if not any(cell.repeated for cell in (*first.cells, *again.cells)):
        assert [cell.order for cell in first.cells] == [cell.order for cell in again.cells]


def test_identical_code_is_graded_against_itself() -> None:
    report = graded("this is never built", protocol="mw4x5-aa")
    assert report.outcome is Outcome.SOLVED
    assert len(report.cells) == FINAL_INPUTS
    assert report.provenance["build"]["commands"] == tuple(
        map(tuple, toolchains()["c"].steps(Path("baseline.c"), "axpy"))
    )


@pytest.mark.parametrize(
    ("changes", "says"),
    [({"kernel": "axpyy"}, "unknown kernel 'axpyy'"), ({"protocol": "mw9x9"}, "unknown protocol 'mw9x9'")],
    ids=["kernel", "protocol"],
)
def test_nothing_is_graded_that_does_not_exist(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        graded(HONEST_C, **changes)


# Right as an oracle, in the judge's process; as a denominator, in its own, it ends before its first call.
CRASHES_AS_DENOMINATOR = """
#ifndef KC_ORACLE
__attribute__((constructor)) static void fail(void) { __builtin_trap(); }
#endif
"""
BROKEN = {
    "reference": {"reference.py": "def twice(x, out, n):\n    raise OSError('no disk')\n"},
    "baseline": {"baseline.c": "this is no C\n"},
    "denominator": {"baseline.c": TWICE_FILES["baseline.c"] + CRASHES_AS_DENOMINATOR},
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_fault_of_the_corpus_is_the_judges(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_kernel(tmp_path, files=TWICE_FILES | BROKEN[what])
    monkeypatch.setenv("KCOURT_TASKS_DIR", str(tmp_path))
    report = graded(TWICE_FILES["controls/honest_sum.c"], kernel="twice")
    assert report.outcome is Outcome.JUDGE_FAULT
    assert report.provenance["finding"]["message"]
    assert report.score is None


ENDINGS = [
    (HONEST_C, Language.C),
    (axpy_c("abort();"), Language.C),
    (axpy_c(LOOP, on_load("_exit(3);")), Language.C),
    (axpy_c(LOOP, on_load("ualarm(3000, 0);")), Language.C),
    ("void axpy(", Language.C),
    (HONEST_C.replace("axpy", "other"), Language.C),
    (axpy_c(f"{LOOP} out[n] = 1;"), Language.C),
    (HONEST_PYTHON, Language.PYTHON),
    (axpy_py("raise ValueError"), Language.PYTHON),
    (axpy_py("pass", "import nobody"), Language.PYTHON),
    (axpy_py("out[:] = 0"), Language.PYTHON),
]


def held() -> dict[str, Any]:
    """What this process holds of the machine."""
    gc.collect()
    maps = Path("/proc/self/maps").read_text()
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        # What is dead and not yet reaped belongs to other tests of this process, and may come and go.
        "children": [child.pid for child in family(os.getpid())],
        "shared memory": maps.count("/memfd:"),
        "segments": sorted(path.name for path in Path("/dev/shm").glob("*kcourt*")),
        "threads": threading.active_count(),
        "affinity": os.sched_getaffinity(0),
    }


def test_many_grades_leave_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KCOURT_TMPDIR", str(tmp_path))
    graded(HONEST_C)  # what is built and loaded once
    before = held()
    outcomes = [grade(order(source, language), court()).outcome for source, language in ENDINGS]
    assert held() == before
    assert list(tmp_path.iterdir()) == []
    assert len(set(outcomes)) == 6
