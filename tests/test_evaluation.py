"""Evaluation tools: how a plan is written, when a finding rejects or flags, and what the sanitizers find."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernels import (
    HONEST_C,
    HONEST_CPP,
    HONEST_FORTRAN,
    LOOP,
    NEEDS_GFORTRAN,
    TWICE,
    TWICE_C,
    axpy_c,
    court,
    order,
    write_kernel,
)

from bench.config import JudgeConfig
from bench.errors import ConfigError, TaskError
from bench.evaluation import (
    LONGEST_S,
    NO_TOOLS,
    EvaluationTool,
    Execution,
    Finding,
    Plan,
    PlannedTool,
    Policy,
    Result,
    carry_out,
    flags,
    parse_plan,
    provenance,
    rejects,
)
from bench.gates import sanitizers
from bench.gates.sanitizers import SANITIZERS
from bench.grade import grade
from bench.judge.schemas import Language, Outcome
from bench.records import GradeReport
from bench.task import Task, find_task, load_task
from cluster.study.settings import JobSettings

C, CPP, FORTRAN, PYTHON = Language.C, Language.CPP, Language.FORTRAN, Language.PYTHON
ADDRESS, UNDEFINED = EvaluationTool.ADDRESS, EvaluationTool.UNDEFINED
REQUIRED, ADVISORY = Policy.REQUIRED, Policy.ADVISORY


def tool(name: EvaluationTool, policy: Policy = ADVISORY, timeout_s: int = 60) -> PlannedTool:
    return PlannedTool(name, policy, timeout_s)


# Plans

PLANS: dict[str, tuple[PlannedTool, ...]] = {
    "": (),
    " , ": (),
    "address": (tool(ADDRESS),),
    "address:required": (tool(ADDRESS, REQUIRED),),
    "undefined:advisory:7": (tool(UNDEFINED, ADVISORY, 7),),
    "address::7": (tool(ADDRESS, ADVISORY, 7),),
    "address:required:180": (tool(ADDRESS, REQUIRED, 180),),
    "undefined address:required": (tool(UNDEFINED), tool(ADDRESS, REQUIRED)),
    " address:required,undefined ": (tool(ADDRESS, REQUIRED), tool(UNDEFINED)),
    "address,\n undefined": (tool(ADDRESS), tool(UNDEFINED)),
}
NO_PLANS = {
    "adress": "there is no tool 'adress'; did you mean 'address'?",
    "Address": "there is no tool 'Address'; did you mean 'address'?",
    "memory": "there is no tool 'memory'; .*address.*undefined",
    ":required": "there is no tool ''",
    "address:require": "the policy of 'address' is 'require'; it must be advisory or required",
    "address:REQUIRED": "it must be advisory or required",
    "address:7": "the policy of 'address' is '7'",
    "address:required:0": "the time of 'address' is 0 s; it must be from 1 to 180",
    "address:required:181": "the time of 'address' is 181 s; it must be from 1 to 180",
    "address:required:3601": "the time of 'address' is 3601 s",
    "address:required:1.5": "the time of 'address' is '1.5'; it must be a whole number of seconds",
    "address:required:-1": "it must be a whole number of seconds",
    "address:required:1s": "it must be a whole number of seconds",
    "address:required:7:8": "'address:required:7:8' is no tool: write name:policy:seconds, such as address:required:60",
    "address address": "the tool 'address' is named twice; name it once",
    "address:required,undefined,address": "the tool 'address' is named twice",
}


@pytest.mark.parametrize("text", PLANS)
def test_a_plan_is_read(text: str) -> None:
    assert parse_plan(text).tools == PLANS[text]


@pytest.mark.parametrize("text", NO_PLANS)
def test_no_plan_is_told_from_a_plan_in_words(text: str) -> None:
    with pytest.raises(ConfigError, match=NO_PLANS[text]):
        parse_plan(text)


@pytest.mark.parametrize("seconds", [0, -1, LONGEST_S + 1])
def test_the_time_of_all_tools_is_a_second_to_an_hour(seconds: int) -> None:
    with pytest.raises(ConfigError, match=f"the time of all tools is {seconds} s; it must be from 1 to 3600"):
        parse_plan("", seconds)


def test_a_tool_has_a_minute_or_all_there_is() -> None:
    assert [parse_plan("address", seconds).tools[0].timeout_s for seconds in (1, 59, 60, 3600)] == [1, 59, 60, 60]
    assert parse_plan("address::3600", 3600).tools[0].timeout_s == 3600


TOOLS = st.permutations(list(EvaluationTool)).flatmap(
    lambda names: st.tuples(
        *(st.builds(PlannedTool, st.just(name), st.sampled_from(Policy), st.integers(1, 180)) for name in names)
    )
)
SOME_TOOLS = st.tuples(TOOLS, st.integers(0, len(EvaluationTool))).map(lambda drawn: drawn[0][: drawn[1]])


@given(SOME_TOOLS, st.sampled_from([" ", ",", ", ", "\n"]))
def test_a_plan_that_is_written_out_is_read_back(tools: tuple[PlannedTool, ...], between: str) -> None:
    assert parse_plan(between.join(f"{one.name}:{one.policy}:{one.timeout_s}" for one in tools)).tools == tools


def test_the_same_plan_has_the_same_fingerprint() -> None:
    usual = parse_plan("address:required undefined")
    assert usual.fingerprint == parse_plan("address:required:60,  undefined:advisory").fingerprint
    others = [
        "",
        "address:required",
        "address undefined",
        "undefined address:required",
        "address:required:59 undefined",
    ]
    plans = [*map(parse_plan, others), parse_plan("address:required undefined", 181), usual]
    assert len({plan.fingerprint for plan in plans}) == len(plans)


def test_what_is_usual_rejects_memory_errors_and_flags_undefined_behaviour() -> None:
    assert [(one.name, one.policy) for one in parse_plan().tools] == [(ADDRESS, REQUIRED), (UNDEFINED, ADVISORY)]
    assert NO_TOOLS.tools == parse_plan("").tools == ()


def config(folder: Path, **settings: Any) -> JudgeConfig:
    return JudgeConfig(shard=folder / "s", log_dir=folder, cache_dir=folder, **settings)


def test_a_judge_has_the_usual_plan_or_its_own(tmp_path: Path) -> None:
    assert config(tmp_path).plan == parse_plan()
    assert config(tmp_path, evaluation="undefined::5", evaluation_timeout_s=9).plan == parse_plan("undefined::5", 9)
    assert config(tmp_path, evaluation="").plan.tools == ()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"evaluation": "adress"}, "did you mean 'address'"),
        ({"evaluation": "address:required:61", "evaluation_timeout_s": 60}, "is 61 s; it must be from 1 to 60"),
        ({"evaluation_timeout_s": 0}, "greater than or equal to 1"),
        ({"evaluation_timeout_s": 3601}, "less than or equal to 3600"),
    ],
)
def test_a_judge_with_no_plan_does_not_start(tmp_path: Path, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        config(tmp_path, **settings)


def test_a_study_plans_its_judges_tools_in_the_same_words() -> None:
    study = {"setup": "s", "kernels": "axpy", "harness": "codex"}
    assert JobSettings.model_validate(study).judge_evaluation == "address:required undefined:advisory"
    for changes, words in (
        ({"judge_evaluation": "adress"}, "there is no tool 'adress'; did you mean 'address'"),
        (
            {"judge_evaluation": "address:required:61", "judge_evaluation_timeout_seconds": 60},
            "is 61 s; it must be from",
        ),
    ):
        with pytest.raises(ValueError, match=words):
            JobSettings.model_validate(study | changes)


# Carrying out


class Clock:
    """Tells the time that a test has let pass."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def done(planned: PlannedTool, finding: Finding = Finding.CLEAN, why: str = "") -> Result:
    return Result(planned.name, planned.policy, Execution.COMPLETED, finding, why)


def test_each_tool_has_its_own_time_within_that_of_all() -> None:
    clock, given_s = Clock(), []

    def run(planned: PlannedTool, seconds: float) -> Result:
        given_s.append(seconds)
        clock.now += 6
        return done(planned)

    plan = Plan((tool(ADDRESS, timeout_s=7), tool(UNDEFINED, timeout_s=7)), 10)
    assert [result.execution for result in carry_out(plan, run, clock)] == [Execution.COMPLETED] * 2
    assert given_s == [7, 4]


@pytest.mark.parametrize("taken_s", [10, 11, 1000])
def test_a_tool_whose_turn_comes_too_late_is_not_run(taken_s: float) -> None:
    clock = Clock()

    def run(planned: PlannedTool, seconds: float) -> Result:
        clock.now += taken_s
        return done(planned)

    first, second = carry_out(Plan((tool(ADDRESS), tool(UNDEFINED, REQUIRED)), 10), run, clock)
    assert first.finding is Finding.CLEAN
    assert (second.tool, second.policy) == (UNDEFINED, REQUIRED)
    assert (second.execution, second.finding) == (Execution.NOT_RUN, Finding.NOT_EVALUATED)
    assert second.why == "the plan's 10 s were over before its turn"


def test_no_plan_runs_nothing() -> None:
    assert carry_out(NO_TOOLS, lambda planned, seconds: pytest.fail("it ran"), Clock()) == ()


COMBINATIONS = list(itertools.product(Policy, Finding))


@pytest.mark.parametrize(("policy", "finding"), COMBINATIONS)
def test_a_finding_rejects_or_flags_as_its_policy_says(policy: Policy, finding: Finding) -> None:
    result = done(tool(ADDRESS, policy), finding, "heap-buffer-overflow")
    rejected, flagged = bool(rejects([result])), flags([result])
    assert rejected == (finding is Finding.FOUND and policy is REQUIRED)
    expected = finding is Finding.FOUND or (finding is Finding.INCONCLUSIVE and policy is REQUIRED)
    assert flagged == ("address: heap-buffer-overflow" if expected else None)


@given(st.lists(st.sampled_from(COMBINATIONS), max_size=4))
def test_the_first_finding_that_counts_decides(drawn: list[tuple[Policy, Finding]]) -> None:
    results = [done(tool(ADDRESS, policy), finding, str(at)) for at, (policy, finding) in enumerate(drawn)]
    rejecting = [result for result in results if rejects([result])]
    flagging = [text for result in results if (text := flags([result]))]
    assert rejects(results) == (rejecting[0] if rejecting else None)
    assert flags(results) == (flagging[0] if flagging else None)


def test_a_row_tells_of_each_tool_all_but_what_the_submission_printed() -> None:
    found = Result("address", REQUIRED, Execution.COMPLETED, Finding.FOUND, "at 3", log="secret words")
    clean = done(tool(UNDEFINED))
    told = provenance(parse_plan(), [found, clean])
    assert told == {
        "plan": parse_plan().fingerprint,
        "results": [
            {"tool": "address", "policy": "required", "execution": "completed", "finding": "found", "why": "at 3"},
            {"tool": "undefined", "policy": "advisory", "execution": "completed", "finding": "clean"},
        ],
    }


# Sanitizers


def looked_into(
    source: str | None, plan: str = "address:required", language: Language = C, task: Task | None = None, **changes: Any
) -> Result:
    """What the one tool of a plan makes of a submission."""
    task = task or find_task("axpy")
    taken = order(source, language, kernel=task.name, **changes)
    (result,) = sanitizers.evaluate(parse_plan(plan), taken, task, court())
    return result


def submitted(
    source: str, language: Language = C, plan: str = "address:required undefined", **changes: Any
) -> GradeReport:
    """A grade as `/submit` makes it, with the tools of a plan."""
    taken = order(source, language, **{"protocol": "mw4x5"} | changes)
    return grade(taken, replace(court(), tools=parse_plan(plan)))


OVER = "volatile int at = 4; block[at] = 1;"
FORTRAN_BUG = HONEST_FORTRAN.replace(
    "value :: a\n", "value :: a\n  real, allocatable, volatile :: block(:)\n  integer, volatile :: at\n"
).replace("  out = ", "  allocate(block(4))\n  at = 5\n  block(at) = 1\n  out = ")
MEMORY_ERRORS = {
    "heap": (
        C,
        axpy_c(f"{LOOP} volatile char *volatile block = malloc(4);\n{OVER} free((void *)block);"),
        "heap-buffer-overflow",
    ),
    "stack": (C, axpy_c(f"{LOOP} volatile char block[4] = {{0}};\n{OVER}"), "stack-buffer-overflow"),
    "global": (C, axpy_c(f"{LOOP}\n{OVER}", "static volatile char block[4], after[64];"), "global-buffer-overflow"),
    "freed": (
        C,
        axpy_c(f"{LOOP} volatile char *volatile block = malloc(8); free((void *)block);\n{OVER}"),
        "heap-use-after-free",
    ),
    "output": (C, axpy_c(f"{LOOP} volatile float *block = out;\nblock[n] = block[n];"), "heap-buffer-overflow"),
    "input": (C, axpy_c(f"volatile float before = x[-1]; (void)before;\n{LOOP}"), "heap-buffer-overflow"),
    "C++": (
        CPP,
        HONEST_CPP.replace("<cstdint>", "<cstdint>\n#include <vector>").replace(
            "{ std", "{ std::vector<int> block(4); int *volatile p = &block[0]; p[4] = 1;\n std"
        ),
        "heap-buffer-overflow",
    ),
    "Fortran": (FORTRAN, FORTRAN_BUG, "heap-buffer-overflow"),
}


@pytest.mark.parametrize(
    "where", [pytest.param(where, marks=NEEDS_GFORTRAN if where == "Fortran" else ()) for where in MEMORY_ERRORS]
)
def test_a_memory_error_is_found_in(where: str) -> None:
    language, source, kind = MEMORY_ERRORS[where]
    result = looked_into(source, language=language)
    assert (result.execution, result.finding) == (Execution.COMPLETED, Finding.FOUND), (result.why, result.log)
    assert result.why.startswith(kind) and f" at axpy{language.suffix}:" in result.why
    assert f"axpy{language.suffix}:" in result.log and "/" not in result.why


def test_a_memory_error_rejects_a_submit_and_says_where() -> None:
    source = axpy_c(f"{LOOP} volatile char *volatile block = malloc(4);\n{OVER} free((void *)block);")
    report = submitted(source)
    assert (report.outcome, report.property) == (Outcome.WRONG, "sanitizer")
    line = source[: source.index("block[at]")].count("\n") + 1
    assert report.detail["message"].startswith(f"heap-buffer-overflow at axpy.c:{line} (found by the tool 'address')")
    assert report.score is None and "WRITE of size 1" in report.log
    told = report.provenance["tools"]
    assert [one["finding"] for one in told["results"]] == ["found", "clean"]


OVERFLOWS = axpy_c(f"{LOOP} volatile int large = 2147483647; large = large + 1;")


def test_undefined_behaviour_flags_and_keeps_the_score() -> None:
    report = submitted(OVERFLOWS)
    assert report.outcome is Outcome.SOLVED and report.score is not None
    assert report.suspect is not None and report.suspect.startswith("undefined: signed integer overflow")


def test_undefined_behaviour_rejects_where_it_is_required() -> None:
    result = looked_into(OVERFLOWS, "undefined:required")
    assert rejects([result]) is result and "signed integer overflow" in result.why and "at axpy.c:" in result.why


def test_a_preview_is_not_looked_into() -> None:
    report = submitted(OVERFLOWS, protocol="mw2x5")
    assert report.outcome is Outcome.SOLVED and report.suspect is None and "tools" not in report.provenance


@pytest.mark.parametrize(
    ("language", "source"),
    [(C, HONEST_C), (CPP, HONEST_CPP), pytest.param(FORTRAN, HONEST_FORTRAN, marks=NEEDS_GFORTRAN)],
    ids=["c", "cpp", "fortran"],
)
def test_an_honest_submission_is_clean(language: Language, source: str) -> None:
    result = looked_into(source, language=language)
    assert (result.execution, result.finding, result.why) == (Execution.COMPLETED, Finding.CLEAN, "")


def test_a_tool_finds_its_kind_of_bug_alone() -> None:
    assert looked_into(OVERFLOWS, "address:required").finding is Finding.CLEAN


WORKSPACE = """#include <stdint.h>
void axpy(const float *x, const float *y, float *out, int64_t n, float a, void *workspace) {{
  volatile char *scratch = workspace;
  scratch[{}] = 1;
  for (int64_t i = 0; i < n; i++) out[i] = a * x[i] + y[i];
}}
"""


@pytest.mark.parametrize(("at", "finding"), [(63, Finding.CLEAN), (64, Finding.FOUND)])
def test_the_workspace_is_as_large_as_it_was_ordered(at: int, finding: Finding) -> None:
    assert looked_into(WORKSPACE.format(at), workspace_bytes=64).finding is finding


NOT_APPLIED = {
    "a library": (ADDRESS, C, "a library has no source to build again"),
    "Python": (ADDRESS, PYTHON, "it does not look into python"),
    "Fortran": (UNDEFINED, FORTRAN, "it does not look into fortran"),
}


@pytest.mark.parametrize("what", NOT_APPLIED)
def test_a_tool_says_that_it_is_not_applied_to(what: str) -> None:
    name, language, why = NOT_APPLIED[what]
    library = "/nowhere/axpy.so" if what == "a library" else None
    result = looked_into(None if library else HONEST_FORTRAN, f"{name}:required", language, library=library)
    assert (result.execution, result.finding) == (Execution.NOT_RUN, Finding.NOT_EVALUATED)
    assert result.why == f"not applied: {why}" and not rejects([result]) and not flags([result])


@pytest.fixture
def untried(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Tools are to find their controls again."""
    monkeypatch.setattr(sanitizers, "_TRIED", {})
    yield monkeypatch


def test_a_tool_that_misses_its_own_control_calls_nothing_clean(untried: pytest.MonkeyPatch) -> None:
    untried.setitem(SANITIZERS, ADDRESS, replace(SANITIZERS[ADDRESS], flags=("-g",)))
    for source in (HONEST_C, MEMORY_ERRORS["heap"][1]):
        result = looked_into(source)
        assert (result.execution, result.finding) == (Execution.NOT_RUN, Finding.NOT_EVALUATED)
        assert result.why.startswith("not applied: it does not find its own control")
        assert not rejects([result]) and not flags([result])


def test_a_tool_that_does_not_build_is_not_applied(untried: pytest.MonkeyPatch) -> None:
    untried.setitem(SANITIZERS, ADDRESS, replace(SANITIZERS[ADDRESS], flags=("-fsanitize=no-such-thing",)))
    result = looked_into(HONEST_C)
    assert (result.execution, result.finding) == (Execution.NOT_RUN, Finding.NOT_EVALUATED)
    assert "it does not find its own control" in result.why


KINDS = {ADDRESS: "heap-buffer-overflow", UNDEFINED: "signed integer overflow"}


@pytest.mark.parametrize("name", EvaluationTool)
def test_each_tool_finds_its_control_in_every_kernel(name: EvaluationTool) -> None:
    for task in map(find_task, ("spmv_csr", "segment_max")):
        source = sanitizers.control(SANITIZERS[name], C, task)
        result = looked_into(source, f"{name}:required", task=task)
        assert result.finding is Finding.FOUND and KINDS[name] in result.why


# Uses most of a small stack; red zones make its frames larger.
DEEP = """
static float sum(int depth) {
  volatile char a[8] = {1}, b[8] = {1}, c[8] = {1}, d[8] = {1};
  return depth ? sum(depth - 1) + a[depth % 8] + b[0] + c[1] + d[2] : 0;
}
static void *work(void *unused) { volatile float got = sum(1000); (void)got; return unused; }
"""
IN_A_SMALL_STACK = f"""
  pthread_t thread; pthread_attr_t attributes;
  pthread_attr_init(&attributes); pthread_attr_setstacksize(&attributes, 192 << 10);
  if (pthread_create(&thread, &attributes, work, 0)) abort();
  pthread_join(thread, 0); {LOOP}
"""
ONLY_HERE = "if (malloc_usable_size(malloc(13)) == 13)"


def test_a_stack_that_red_zones_overflow_is_nobodys_fault() -> None:
    source = axpy_c(IN_A_SMALL_STACK, f"__attribute__((noinline)) {DEEP.strip()}")
    assert submitted(source, protocol="mw2x5").outcome is Outcome.SOLVED
    result = looked_into(source)
    assert (result.execution, result.finding) == (Execution.COMPLETED, Finding.INCONCLUSIVE), result.why
    assert not rejects([result]) and flags([result]) and not flags([replace(result, policy=ADVISORY)])


def test_a_submission_that_only_a_tool_sees_loop_is_flagged() -> None:
    source = axpy_c(f"{LOOP} {ONLY_HERE} for (volatile int i = 0;;);", "#include <malloc.h>")
    result = looked_into(source, "address:required:3")
    assert (result.execution, result.finding) == (Execution.TIMEOUT, Finding.INCONCLUSIVE), result.why
    assert not rejects([result]) and flags([result])


def test_a_submission_that_only_a_tool_sees_die_is_flagged() -> None:
    source = axpy_c(f"{LOOP} {ONLY_HERE} __builtin_trap();", "#include <malloc.h>")
    result = looked_into(source)
    assert (result.execution, result.finding) == (Execution.COMPLETED, Finding.INCONCLUSIVE), result.why
    assert result.why.startswith("it ended without a finding") and flags([result])


def test_a_submission_that_answers_wrongly_under_a_tool_is_found_out() -> None:
    source = axpy_c(f"{LOOP} {ONLY_HERE} out[0] += 1 + out[0];", "#include <malloc.h>")
    result = looked_into(source)
    assert (result.execution, result.finding) == (Execution.COMPLETED, Finding.FOUND), result.why
    assert result.why == "it answers wrongly when its memory is laid out otherwise"


def test_a_report_that_a_submission_prints_is_none() -> None:
    printed = 'fprintf(stderr, "ERROR: AddressSanitizer: heap-buffer-overflow at axpy.c:1\\n"); fflush(stderr);'
    assert looked_into(axpy_c(f"{LOOP} {printed}")).finding is Finding.CLEAN


def test_no_macro_tells_a_submission_that_it_is_looked_into() -> None:
    seen = "#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_UNDEFINED__)\n#error seen\n#endif"
    for name in EvaluationTool:
        assert looked_into(axpy_c(LOOP, seen), f"{name}:required").finding is Finding.CLEAN


# Manifests


def twice(root: Path, **changes: Any) -> Task:
    return load_task(write_kernel(root, TWICE | changes))


def test_a_manifest_adds_sizes_for_a_tool(tmp_path: Path) -> None:
    bug = "if (n == 2503) { volatile char *p = malloc(4); volatile int at = 4; p[at] = 1; free((void *)p); }"
    source = "#include <stdlib.h>\n" + TWICE_C.format(f"{bug} for (int64_t i = 0; i < n; i++) out[i] = 2 * x[i];")
    assert looked_into(source, task=twice(tmp_path / "without")).finding is Finding.CLEAN
    other = twice(tmp_path / "other", tools={"undefined": {"sizes": [{"n": 2503}]}})
    assert looked_into(source, task=other).finding is Finding.CLEAN
    adapted = twice(tmp_path / "with", tools={"address": {"sizes": [{"n": 3}, {"n": 2503}]}})
    assert looked_into(source, task=adapted).finding is Finding.FOUND


MANIFEST_FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown tool": ({"adress": {"sizes": [{"n": 3}]}}, "tools.*address"),
    "a policy": ({"address": {"policy": "advisory"}}, "tools.address.*policy"),
    "a time": ({"address": {"timeout_s": 1}}, "tools.address.*timeout_s"),
    "a size of nothing": ({"address": {"sizes": [{"n": 0}]}}, "tools.address.*sizes"),
    "a size that is none": ({"address": {"sizes": [{"m": 3}]}}, r"tools.address.*names \['m'\].*\['n'\]"),
    "too few sizes": ({"address": {"sizes": [{}]}}, r"tools.address.*names \[\].*\['n'\]"),
}


@pytest.mark.parametrize("fault", MANIFEST_FAULTS)
def test_a_manifest_may_not_name(tmp_path: Path, fault: str) -> None:
    tools, words = MANIFEST_FAULTS[fault]
    with pytest.raises(TaskError, match=rf"task\.yaml:\d+: {words}"):
        twice(tmp_path, tools=tools)
