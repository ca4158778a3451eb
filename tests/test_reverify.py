"""Re-verify: what is about to be credited is built and run again, and what it answers then."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernels import (
    HONEST_C,
    HONEST_CPP,
    HONEST_FORTRAN,
    HONEST_HIP,
    HONEST_PYTHON,
    LANGUAGES,
    LOOP,
    NEEDS_GFORTRAN,
    axpy_c,
    axpy_py,
    court,
    graded,
    order,
)

from bench import reverify
from bench.errors import JudgeFault
from bench.gates import artifacts
from bench.judge.schemas import Language, Outcome
from bench.measure.session import Session
from bench.measure.stopwatch import Stopwatch
from bench.records import GradeReport
from bench.reference import Twin
from bench.sandbox import scratch_folder
from bench.task import find_task
from bench.tolerance import Oracle
from bench.verdict import Rejected

C, CPP, FORTRAN, PYTHON = Language.C, Language.CPP, Language.FORTRAN, Language.PYTHON
HONEST = {
    C: HONEST_C,
    CPP: HONEST_CPP,
    FORTRAN: HONEST_FORTRAN,
    PYTHON: HONEST_PYTHON,
    Language.HIP: HONEST_HIP,
}
USUAL_THREADS = court().sandbox.variables["OMP_NUM_THREADS"]
IN_OTHER_TEAMS = f"if (omp_get_max_threads() != {USUAL_THREADS})"


def submitted(source: str | None, language: Language = C, **changes: Any) -> GradeReport:
    return graded(source, language, protocol="mw4x5", **changes)


def again(source: str | None, language: Language = C, **changes: Any) -> dict[str, Any]:
    """What re-verify alone finds, for the grade's provenance."""
    return reverify.reverify(order(source, language, **changes), find_task("axpy"), court(), Stopwatch())


def rejected_again(source: str, language: Language = C) -> Rejected:
    with pytest.raises(Rejected) as rejected:
        again(source, language)
    return rejected.value


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_honest_submission_gives_the_same_bits_again(language: Language) -> None:
    found = again(HONEST[language], language)
    assert found["cases"] >= reverify.FUZZED_CASES and found["same_bits"] == found["cases"]


def test_a_grade_says_how_many_answers_were_the_same() -> None:
    report = submitted(HONEST_C)
    told = report.provenance["reverify"]
    assert report.outcome is Outcome.SOLVED and set(told) == {"cases", "same_bits"}
    assert told["same_bits"] == told["cases"] > reverify.FUZZED_CASES
    assert report.stages_ms["reverify"] > 0


@pytest.mark.parametrize("protocol", ["mw2x5", "mw4x5-aa"])
def test_what_is_not_credited_is_not_looked_at_again(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.grade.reverify", lambda *_: pytest.fail("it was"))
    report = graded(HONEST_C, protocol=protocol)
    assert report.outcome is Outcome.SOLVED and "reverify" not in report.provenance


def test_who_is_wrong_at_first_is_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.grade.reverify", lambda *_: pytest.fail("it was"))
    assert submitted(axpy_c("")).outcome is Outcome.WRONG


OTHER_TEAMS = axpy_c(f"{LOOP} {IN_OTHER_TEAMS} out[n / 2] += 1 + out[n / 2] * out[n / 2];", "#include <omp.h>")


def test_who_is_right_in_a_team_of_one_size_alone_is_wrong() -> None:
    assert graded(OTHER_TEAMS).outcome is Outcome.SOLVED, "a preview knows no other team"
    report = submitted(OTHER_TEAMS)
    assert (report.outcome, report.property) == (Outcome.WRONG, "determinism")
    assert report.detail["message"].startswith("a second run on the same values answered wrongly; look for a race")
    assert report.detail["stage"] == reverify.STAGE and report.detail["sizes"] and report.score is None


def test_a_team_is_larger_the_second_time() -> None:
    grown = reverify.with_more_threads(court())
    assert int(grown.variables["OMP_NUM_THREADS"]) == int(USUAL_THREADS) + reverify.MORE_THREADS > int(USUAL_THREADS)
    assert court().sandbox.variables["OMP_NUM_THREADS"] == USUAL_THREADS, "the court's own stays as it is"
    assert (grown.level, grown.means, grown.uid) == (court().sandbox.level, court().sandbox.means, court().sandbox.uid)


# Something that differs from process to process: where the operating system has put the stack.
CHANCE = "static uint64_t drawn(void) { int here; return (uint64_t)(uintptr_t)&here / 16 * 0x9E3779B97F4A7C15; }"
DRAW = (
    "static uint64_t state; if (!state) state = drawn() | 1; state = state * 6364136223846793005 + 1442695040888963407;"
)


def test_a_lottery_is_lost_in_the_long_run() -> None:
    lottery = axpy_c(f"{DRAW} {LOOP} if (state >> 63) out[0] += 1 + out[0] * out[0];", CHANCE)
    rejected = rejected_again(lottery)
    assert rejected.outcome is Outcome.WRONG and rejected.property in ("values", "determinism")


def test_who_counts_its_calls_starts_from_one_again() -> None:
    late = axpy_c(f"static int calls; {LOOP} if (++calls < 3) out[0] += 1 + out[0] * out[0];")
    assert rejected_again(late).property == "values"


# What a block of the heap holds that was given back: addresses of the allocator, which differ from process to process.
LEFT_OVERS = """
static uintptr_t left(void) {
  char *volatile block = malloc(5000), *volatile after = malloc(64);
  free(block);
  volatile uintptr_t *again = malloc(5000);
  uintptr_t found = again[0] >> 12;
  free((void *)again), free(after);
  return found;
}
"""


def test_answers_that_hang_on_what_memory_holds_are_wrong() -> None:
    reads = "uintptr_t bits = left(); for (int64_t i = 0; i < n && i < 24; i++) out[i] += (float)(bits >> i & 1) * 9;"
    rejected = rejected_again(axpy_c(f"{LOOP} {reads}", LEFT_OVERS))
    assert rejected.outcome is Outcome.WRONG and rejected.property in ("values", "determinism")


def test_answers_that_hang_on_memory_within_the_tolerance_keep_their_score_and_lose_their_bits() -> None:
    reads = """uintptr_t bits = left();
      for (int64_t i = 0; i < n && i < 24; i++) if (bits >> i & 1) out[i] = nextafterf(out[i], 9);"""
    report = submitted(axpy_c(f"{LOOP} {reads}", LEFT_OVERS))
    assert report.outcome is Outcome.SOLVED, report.detail
    told = report.provenance["reverify"]
    assert told["same_bits"] < told["cases"]


OTHER_ENDS = {
    "dies": (f"{LOOP} {IN_OTHER_TEAMS} abort();", Outcome.CRASHED, "signal"),
    "leaves its arrays": (
        f"{LOOP} {IN_OTHER_TEAMS} {{ volatile float *o = out; o[n] = 1; }}",
        Outcome.TAMPERED,
        "memory",
    ),
    "changes the rounding": (f"{LOOP} {IN_OTHER_TEAMS} fesetround(FE_UPWARD);", Outcome.TAMPERED, "state"),
}


@pytest.mark.parametrize("what", OTHER_ENDS)
def test_who_is_found_out_the_second_time_ends_as_at_first(what: str) -> None:
    body, outcome, property = OTHER_ENDS[what]
    rejected = rejected_again(axpy_c(body, "#include <omp.h>\n#include <fenv.h>"))
    assert (rejected.outcome, rejected.property) == (outcome, property)


def test_python_starts_from_one_again_too() -> None:
    late = axpy_py("calls.append(1); out[:] = a * x + y; out[0] += (len(calls) < 3) * (1 + out[0] ** 2)", "calls = []")
    assert rejected_again(late, PYTHON).property == "values"


def test_the_source_is_built_in_a_folder_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    folders: list[Path] = []
    make = artifacts.make

    def noted(sandbox: Any, folder: Path, *rest: Any, **named: Any) -> Any:
        folders.append(folder)
        return make(sandbox, folder, *rest, **named)

    monkeypatch.setattr(artifacts, "make", noted)
    assert submitted(HONEST_C).outcome is Outcome.SOLVED
    assert len(set(folders)) == 2 and not any(folder.exists() for folder in folders)


def test_the_cases_are_those_of_no_other_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: dict[str, list[bytes]] = {}
    prepare = Session.prepare

    def noted(self: Any, case: Any, *rest: Any, **named: Any) -> Any:
        prepared = prepare(self, case, *rest, **named)
        if prepared.views["x"].size > 3:
            drawn.setdefault(case.stage, []).append(prepared.views["x"].tobytes())
        return prepared

    monkeypatch.setattr(Session, "prepare", noted)
    assert submitted(HONEST_C).outcome is Outcome.SOLVED
    before = {values for stage, all_of in drawn.items() if stage != reverify.STAGE for values in all_of}
    assert drawn[reverify.STAGE] and before.isdisjoint(drawn[reverify.STAGE])


class Other(Twin):
    """A twin that means something else than the reference."""

    def oracle(self, inputs: Any, sizes: Any) -> Oracle:
        told = super().oracle(inputs, sizes)
        return Oracle({name: np.asarray(values + 1) for name, values in told.expected.items()}, told.magnitude)


def test_oracles_that_disagree_are_the_judges_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reverify, "Twin", Other)
    with pytest.raises(JudgeFault, match=r"reference and twin disagree at n=\d+; mend one of them"):
        again(HONEST_C)
    report = submitted(HONEST_C)
    assert (report.outcome, report.property) == (Outcome.JUDGE_FAULT, "judge")


def test_a_workspace_is_there_again() -> None:
    source = axpy_c(
        "float *kept = workspace; kept[63] = a; for (int64_t i = 0; i < n; i++) out[i] = kept[63] * x[i] + y[i];"
    )
    found = again(source.replace("float a)", "float a, void *workspace)"), workspace_bytes=256)
    assert found["same_bits"] == found["cases"]


def test_a_library_is_taken_again(tmp_path: Path) -> None:
    library = tmp_path / "axpy.so"
    with scratch_folder() as folder:
        built, _ = artifacts.make(court().sandbox, folder, find_task("axpy"), order(HONEST_C))
        library.write_bytes(built.path.read_bytes())
    found = again(None, library=str(library))
    assert found["same_bits"] == found["cases"]


@NEEDS_GFORTRAN
def test_fortran_starts_from_one_again_too() -> None:
    source = HONEST_FORTRAN.replace("value :: a\n", "value :: a\n  integer, save :: calls = 0\n").replace(
        "  out = a * x + y\n", "  calls = calls + 1\n  out = a * x + y\n  if (calls < 4) out(1) = 3 + 2 * abs(out(1))\n"
    )
    assert rejected_again(source, FORTRAN).property == "values"
