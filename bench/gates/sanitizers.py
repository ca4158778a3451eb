"""The compiler's sanitizers, as evaluation tools: a build and a process of their own, small inputs, exact arrays."""

import contextlib
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from bench import abi
from bench.build import builder
from bench.court import Court
from bench.errors import EnvironmentFault, JudgeFault
from bench.evaluation import EvaluationTool, Execution, Finding, Plan, PlannedTool, Result, carry_out
from bench.inputs import Case, edge_cases, fuzzed_cases
from bench.judge.schemas import Language, Outcome
from bench.measure.session import Session
from bench.measure.stopwatch import Stopwatch
from bench.records import SubmissionOrder
from bench.runner.buffers import Arena
from bench.runner.runner import Runner
from bench.sandbox import scratch_folder
from bench.seeds import hkdf
from bench.task import Task
from bench.verdict import Rejected

STAGE = "tool"
FUZZED_CASES = 4
# A sanitizer takes the functions of C++ that it watches from what is there when the process starts.
_CPP_RUNTIME = ("-Wl,--no-as-needed", "-lstdc++")
CONTROL_S = 60
# What a sanitizer ends the process with when it has found something.
FOUND = 99
_MEMORY_MIB = 4096
_COMMON = f"exitcode={FOUND}:halt_on_error=1:abort_on_error=0"
# Red zones make frames larger and blocks dearer than they are: what runs out under a sanitizer alone is no bug.
_OF_ITS_OWN = (
    "stack-overflow",
    "out-of-memory",
    "allocation-size-too-big",
    "rss limit exhausted",
    "failed to allocate",
)

_WRONG = "it answers wrongly when its memory is laid out otherwise"

Judged = tuple[Execution, Finding, str, str]


@dataclass(frozen=True)
class Sanitizer:
    """One sanitizer: the compiler's options, the runtime's variables, and the words that its reports begin with.

    `bugs` are the positive controls: a body in each language with what this sanitizer is there to find. The same source
    as for the grade is built: it is not told by a macro that it is looked into.
    """

    name: EvaluationTool
    flags: tuple[str, ...]
    variables: Mapping[str, str]
    begins: str
    bugs: Mapping[Language, str]


# The blocks are volatile: a compiler may leave out what is written to one that is then freed.
_C_ADDRESS = (
    "volatile int at = 4; volatile int *block = (volatile int *)malloc(at * sizeof *block);"
    " block[at] = at; free((void *)block);"
)
_C_UNDEFINED = "volatile int large = 2147483647; large = large + 1;"
_FORTRAN_ADDRESS = """
  real, allocatable, volatile :: block(:)
  integer, volatile :: at
  allocate(block(4))
  at = 5
  block(at) = 1
"""
SANITIZERS = {
    tool.name: tool
    for tool in (
        Sanitizer(
            EvaluationTool.ADDRESS,
            ("-fsanitize=address", "-fno-omit-frame-pointer", "-g", "-U__SANITIZE_ADDRESS__"),
            {"ASAN_OPTIONS": f"{_COMMON}:detect_leaks=0:hard_rss_limit_mb={_MEMORY_MIB}"},
            "ERROR: AddressSanitizer: ",
            {Language.C: _C_ADDRESS, Language.CPP: _C_ADDRESS, Language.FORTRAN: _FORTRAN_ADDRESS},
        ),
        Sanitizer(
            EvaluationTool.UNDEFINED,
            (
                *("-fsanitize=undefined", "-fno-sanitize-recover=undefined", "-g", "-U__SANITIZE_UNDEFINED__"),
                "-fno-sanitize=vptr",  # it makes a pipe, which the filter answers with SIGSYS
            ),
            {"UBSAN_OPTIONS": _COMMON},
            "runtime error: ",
            {Language.C: _C_UNDEFINED, Language.CPP: _C_UNDEFINED},
        ),
    )
}


def evaluate(plan: Plan, order: SubmissionOrder, task: Task, court: Court) -> tuple[Result, ...]:
    """Have the plan's tools look at an order's submission. Faults are as in `run`."""
    return carry_out(plan, lambda tool, seconds: _result(tool, seconds, order, task, court), time.monotonic)


def _result(tool: PlannedTool, seconds: float, order: SubmissionOrder, task: Task, court: Court) -> Result:
    sanitizer = SANITIZERS[tool.name]
    if order.source is None:
        why = "not applied: a library has no source to build again"
    elif order.language not in sanitizer.bugs:
        why = f"not applied: it does not look into {order.language}"
    else:
        why = not_ready(sanitizer, order.language, task, court)
    if why:
        return Result(tool.name, tool.policy, Execution.NOT_RUN, Finding.NOT_EVALUATED, why)
    execution, finding, why, log = run(sanitizer, seconds, order, task, court)
    return Result(tool.name, tool.policy, execution, finding, why, log)


_TRIED: dict[tuple[str, Language], str] = {}


def not_ready(sanitizer: Sanitizer, language: Language, task: Task, court: Court) -> str:
    """Why a sanitizer is not applied to a language here: it does not find its own control. Tried once a process.

    The control is written for the kernel `task`, whichever that is.
    """
    key = sanitizer.name, language
    if key not in _TRIED:
        order = SubmissionOrder(
            kernel=task.name, language=language, source=control(sanitizer, language, task), seed=b"control".hex()
        )
        try:
            _, finding, why, log = run(sanitizer, CONTROL_S, order, task, court)
        except JudgeFault as fault:  # it may go better the next time
            return f"not applied: its control could not be run ({fault})"
        missed = (
            f"not applied: it does not find its own control ({why or 'it says that it is clean'}) {log[-300:]}".strip()
        )
        _TRIED[key] = "" if finding is Finding.FOUND and why != _WRONG else missed
    return _TRIED[key]


def control(sanitizer: Sanitizer, language: Language, task: Task) -> str:
    """A submission to `task` with the bug that the sanitizer has to find."""
    declared = abi.declaration(task, language)
    if language is Language.FORTRAN:
        *head, end = declared.splitlines()
        return "\n".join([*head, sanitizer.bugs[language], end, ""])
    return f"#include <stdint.h>\n#include <stdlib.h>\n{declared.rstrip(';')} {{ {sanitizer.bugs[language]} }}\n"


def run(sanitizer: Sanitizer, seconds: float, order: SubmissionOrder, task: Task, court: Court) -> Judged:
    """Build the order's source with a sanitizer and call it on small inputs for at most `seconds`.

    Raises:
        JudgeFault: the judge failed at it, or something outside ended it.
    """
    end = time.monotonic() + seconds
    seed = hkdf(bytes.fromhex(order.seed), sanitizer.name)
    cases = cases_for(sanitizer.name, task, seed)
    workspace = order.workspace_bytes > 0
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(scratch_folder())
        arena = stack.enter_context(
            contextlib.closing(Arena(task, [case.sizes for case in cases], order.workspace_bytes))
        )
        try:
            assert order.source is not None
            sandbox = court.sandbox
            artifact = builder.build_submission(sandbox, folder, task, order.language, order.source, sanitizer.flags)
            shim = builder.call_shim(sandbox, task, order.language, workspace)
            variables = {**sandbox.variables, **sanitizer.variables, "OMP_STACKSIZE": "64M"}
            watched = replace(sandbox, variables=variables)
            checks = (*sanitizer.flags, *(_CPP_RUNTIME if order.language is Language.CPP else ()))
            runner = Runner(watched, folder, artifact, shim, arena, court.untimed, workspace, checks)
        except Rejected as rejected:
            return Execution.TOOL_ERROR, Finding.NOT_EVALUATED, "it does not build with the sanitizer", rejected.log
        except EnvironmentFault as fault:
            return Execution.TOOL_ERROR, Finding.NOT_EVALUATED, str(fault), ""
        stack.callback(runner.close)
        return _called(sanitizer, runner, Session(task, seed, arena, Stopwatch()), cases, end)


def cases_for(tool: EvaluationTool, task: Task, seed: bytes) -> list[Case]:
    """Edge and fuzzed inputs, and those that the kernel's manifest adds for this tool."""
    adapter = task.manifest.tools.get(tool)
    added = [Case(STAGE, f"a{i}", sizes, i) for i, sizes in enumerate(adapter.sizes if adapter else ())]
    return [*edge_cases(task, seed, STAGE), *fuzzed_cases(task, seed, STAGE, FUZZED_CASES), *added]


def _called(sanitizer: Sanitizer, runner: Runner, session: Session, cases: list[Case], end: float) -> Judged:
    try:
        runner.load(timed=False)
        for case in cases:
            left_s = end - time.monotonic()
            if left_s <= 0:
                return Execution.TIMEOUT, Finding.INCONCLUSIVE, "its time was over before the last case", ""
            session.call(runner, session.prepare(case), round(left_s * 1e9))
    except Rejected as rejected:
        return _judged(sanitizer, runner, rejected)
    except EnvironmentFault as fault:
        return Execution.TOOL_ERROR, Finding.NOT_EVALUATED, str(fault), ""
    return Execution.COMPLETED, Finding.CLEAN, "", ""


def _judged(sanitizer: Sanitizer, runner: Runner, rejected: Rejected) -> Judged:
    """What to make of a submission that fails in a sanitizer's process, after it had passed without."""
    printed = runner.printed()
    if rejected.outcome is Outcome.TIMEOUT:
        return Execution.TIMEOUT, Finding.INCONCLUSIVE, "a call took longer than the tool's time", printed
    if rejected.outcome is Outcome.WRONG:
        return Execution.COMPLETED, Finding.FOUND, _WRONG, ""
    before, begins, report = printed.partition(sanitizer.begins)
    if runner.exit_code != FOUND or not begins or any(word in printed for word in _OF_ITS_OWN):
        why = f"it ended without a finding ({rejected.property}: {rejected.detail.get('message', '')})"
        return Execution.COMPLETED, Finding.INCONCLUSIVE, why, printed
    why = _short(report) + _line_before(before)
    return Execution.COMPLETED, Finding.FOUND, why, _without_folders(report.partition("\n\n")[0])


def _line_before(before: str) -> str:
    """The place that UndefinedBehaviorSanitizer names in front of its words: `file:line:column: `."""
    place = re.search(r"([\w.-]+:\d+):\d+: $", before)
    return f" at {place[1]}" if place else ""


def _short(report: str) -> str:
    """A report's first line without addresses and values, which would tell of inputs; and the line that it names."""
    what = re.sub(r" on (unknown )?address.*| \(pc .*", "", report.splitlines()[0].strip())
    what = re.sub(r"0x[0-9a-f]+|-?\b\d[\d.e+-]*\b", "…", what)
    place = re.search(r"#\d+ 0x\w+ in \S+ \S*?([\w.-]+:\d+)\n", report)
    return f"{what} at {place[1]}" if place else what


def _without_folders(text: str) -> str:
    return re.sub(r"/\S*/", "", text)
