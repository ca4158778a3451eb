"""Re-verify: what is about to be credited is built and run once more – elsewhere, twice, on values of its own."""

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.build import builder
from bench.court import Court
from bench.errors import JudgeFault
from bench.gates import artifacts
from bench.inputs import Case, edge_cases, fuzzed_cases, sizes_text
from bench.judge.schemas import Outcome
from bench.measure.sampling import TimeLimits
from bench.measure.session import Prepared, Session
from bench.measure.stopwatch import Stopwatch
from bench.records import GradeOrder
from bench.reference import OracleOf, Twin
from bench.runner.buffers import Arena
from bench.runner.memory import Placement
from bench.runner.runner import Runner
from bench.sandbox import Sandbox, scratch_folder
from bench.seeds import hkdf
from bench.task import Task
from bench.verdict import Rejected

STAGE = "reverify"
FUZZED_CASES = 8
MORE_THREADS = 3

Outputs = Mapping[str, NDArray[Any]]


def reverify(order: GradeOrder, task: Task, court: Court, watch: Stopwatch) -> dict[str, Any]:
    """Build the order's source again in a fresh folder, and call it on fresh cases in two fresh processes.

    The second process has more threads for OpenMP. What the first answers is held against the NumPy reference, what
    the second answers against the float64 twin and, bit by bit, against the first.

    Returns:
        For the grade's provenance: how many cases there were, and on how many the two gave the same bits.

    Raises:
        Rejected: it fails there (`values`, `memory`, ...), or its second answer is wrong where the first was not
            (`determinism`).
        JudgeFault: the two oracles disagree.
    """
    seed = hkdf(bytes.fromhex(order.seed), STAGE)
    cases = [*edge_cases(task, seed, STAGE), *fuzzed_cases(task, seed, STAGE, FUZZED_CASES)]
    arena = Arena(task, [case.sizes for case in cases], order.workspace_bytes, court.memory)
    workspace = order.workspace_bytes > 0
    with contextlib.closing(arena), scratch_folder() as folder, contextlib.ExitStack() as stack:
        with watch.stage("build"):
            shim = builder.call_shim(court.sandbox, task, order.language, workspace)
        made = artifacts.planned(folder, task, order)

        def start_both() -> list[Runner]:
            runners = (
                Runner(sandbox, folder, made, shim, arena, court.untimed, workspace, kit=court.kit)
                for sandbox in (court.sandbox, with_more_threads(court))
            )
            return [stack.enter_context(contextlib.closing(runner)) for runner in runners]

        early = start_both() if court.gpu else []  # a GPU takes as long to open as a build
        with watch.stage("build"):
            artifacts.make(court.sandbox, folder, task, order, kit=court.kit)
            twin = Twin(court.sandbox, task if task.baselines else task.gpu_track, court.memory, court.kit)
        first, second = early or start_both()
        session = Session(task, seed, arena, watch)
        first.load(timed=False)
        second.load(timed=False)
        same = [agree(session, case, first, second, twin.oracle, number) for number, case in enumerate(cases)]
    return {"cases": len(cases), "same_bits": sum(same)}


def with_more_threads(court: Court) -> Sandbox:
    """The court's sandbox, for a larger team: a race that never shows among few threads may show there."""
    sandbox = court.sandbox
    threads = int(sandbox.variables.get("OMP_NUM_THREADS", "1")) + MORE_THREADS
    return replace(sandbox, variables={**sandbox.variables, "OMP_NUM_THREADS": str(threads)})


def agree(session: Session, case: Case, first: Runner, second: Runner, oracle_of: OracleOf, number: int) -> bool:
    """Call both on one case; whether they gave the same bits. Faults are as in `reverify`."""
    placement = (Placement.TAIL, Placement.HEAD, Placement.MIDDLE)[number % 3]
    prepared = session.prepare(case, placement=placement)
    limits = TimeLimits()
    session.call(first, prepared, limits.now_ns)
    answer = answers(session, prepared)
    again = session.prepare(case, oracle_of, placement)
    try:
        session.call(second, again, limits.now_ns)
    except Rejected as rejected:
        raise second_thoughts(rejected, case, same_bits(answer, answers(session, again))) from rejected
    return same_bits(answer, answers(session, again))


def answers(session: Session, prepared: Prepared) -> Outputs:
    """Copies of what a call has left in the outputs."""
    return {name: session.memory.get(prepared.views[name]) for name in session.task.outputs}


def same_bits(first: Outputs, second: Outputs) -> bool:
    return all(np.array_equal(kept.view(np.uint8), second[name].view(np.uint8)) for name, kept in first.items())


def second_thoughts(rejected: Rejected, case: Case, same: bool) -> Exception:
    """What a second answer means that is wrong, when the first one to the same question was right."""
    if rejected.outcome is not Outcome.WRONG:
        return rejected
    if same:
        return JudgeFault(f"reference and twin disagree at {sizes_text(case.sizes)}; mend one of them")
    message = "a second run on the same values answered wrongly; look for a race, or memory that nothing was written to"
    return Rejected(Outcome.WRONG, "determinism", {**rejected.detail, "message": message})
