"""What a submission may not do between its calls, and the calls that differ in one element."""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest
from kernels import HONEST_C, LOOP, axpy_c, court, graded, on_load, order

from bench.errors import JudgeFault
from bench.gates import agreement
from bench.grade import Work, build, on_timing_cores, start_runners
from bench.inputs import Case
from bench.judge.schemas import Outcome, Preset
from bench.measure.sampling import MAX_REPEATS
from bench.measure.session import Session
from bench.measure.stopwatch import Stopwatch
from bench.native.helper import Timing
from bench.runner.buffers import Arena
from bench.runner.runner import Runner
from bench.task import Role, Task, find_task, select
from bench.verdict import Rejected

# What a runner does about whatever it has loaded.
pytestmark = pytest.mark.usefixtures("ungated")
LIMIT_NS = 5_000_000_000
WORKS = "static void *work(void *unused) { for (volatile long i = 0;; i++); return unused; } static pthread_t thread;"
RESTS = "static void *work(void *unused) { sleep(600); return unused; } static pthread_t thread;"
START = f"{LOOP} if (!thread) pthread_create(&thread, 0, work, 0);"
# Knows an input by three of its elements, and answers what it answered then.
SAMPLES = """
static float kept[1 << 25]; static double seen;
static double print_of(const float *x, const float *y, int64_t n, float a) {
  return n + 3.0 * x[0] + 5.0 * y[n / 2] + 7.0 * x[n - 1] + 11.0 * a;
}
"""
RECALLS = f"""if (print_of(x, y, n, a) != seen) {{ {LOOP} seen = print_of(x, y, n, a); memcpy(kept, out, n * 4); }}
  else memcpy(out, kept, n * 4);"""


@contextmanager
def seated(source: str, folder: Path) -> Iterator[tuple[Session, Runner]]:
    """A submission in its runner, ready to be called."""
    work = Work(order(source), find_task("axpy"), court(), folder)
    with work.court.building(work.watch), start_runners(work, settled=True) as (arena, runner, _):
        build(work)
        with on_timing_cores(work, arena, runner) as session:
            yield session, runner


@pytest.mark.parametrize("thread", [WORKS, RESTS], ids=["works", "rests"])
def test_no_thread_runs_between_calls(tmp_path: Path, thread: str) -> None:
    """The values of the next call lie in the buffers then, and no clock runs."""
    with seated(axpy_c(START, thread), tmp_path) as (session, runner):
        session.call(runner, session.prepare(Case("verify", "f0", {"n": 100})), LIMIT_NS)
        used = cpu_ns(runner.pid)
        session.prepare(Case("verify", "f1", {"n": 100}))
        time.sleep(0.1)
        assert cpu_ns(runner.pid) == used


def cpu_ns(pid: int) -> list[int]:
    """CPU time (ns) of each thread of a process so far."""
    return [int(path.read_text().split()[0]) for path in sorted(Path(f"/proc/{pid}/task").glob("*/schedstat"))]


def test_a_thread_may_work_while_it_is_loaded() -> None:
    works = "for (volatile long i = 0; i < 5000000; i++);"
    begins = on_load("pthread_create(&thread, 0, work, 0); usleep(100000);")
    rests = f"static pthread_t thread; static void *work(void *unused) {{ {works} sleep(600); return unused; }}"
    report = graded(axpy_c(LOOP, rests + begins))
    assert report.outcome is Outcome.SOLVED, report.detail


def test_a_failed_build_is_no_overhead_of_the_judge() -> None:
    assert graded("int x = ;").stages_ms["build"] > 5, "no compiler reads a file faster"


def test_a_runner_waits_to_be_let_in(tmp_path: Path) -> None:
    work = Work(order(HONEST_C), find_task("axpy"), court(), tmp_path)
    with work.court.building(work.watch), start_runners(work, settled=True) as (_, runner, denominator):
        assert runner.pid == 0
        build(work)
        runner.load()
        assert denominator is not None
        denominator.load()
        assert runner.watched.stopped() and denominator.watched.stopped()


@pytest.mark.parametrize("protocol", ["mw2x5", "mw4x5"])
def test_who_knows_an_input_by_some_elements_is_wrong(protocol: str) -> None:
    report = graded(axpy_c(RECALLS, SAMPLES), protocol=protocol)
    assert (report.outcome, report.property) == (Outcome.WRONG, "values")
    assert report.detail["stage"] == "timed"


@pytest.mark.parametrize("task", select("all"), ids=lambda task: task.name)
def test_a_twin_differs_in_one_element(task: Task) -> None:
    sizes = task.size(Preset.S)
    with closing(Arena(task, [sizes])) as arena:
        session = Session(task, bytes(range(32)), arena, Stopwatch())
        drawn = []
        for twin in (False, True):
            prepared = session.prepare(Case("timed", "i0.1", sizes, twin=twin))
            inputs = {name for name, array in task.arrays.items() if array.role is not Role.OUTPUT}
            drawn.append({name: prepared.views[name].copy() for name in inputs})
    one, other = drawn
    assert sum(int(np.sum(one[name] != other[name])) for name in one) == 1


def test_a_call_without_its_core_is_measured_again() -> None:
    report = graded(axpy_c(f"{LOOP} usleep(2000);"))
    assert report.outcome is Outcome.SOLVED
    assert [cell.repeated for cell in report.cells] == [MAX_REPEATS] * len(report.cells)


STRAYED, FINE = Timing(100, 0, offset_ns=90, strayed=True), Timing(100, 0)


@pytest.mark.parametrize(("strayed", "fine"), [(0, 5), (1, 4), (2, 3), (3, 3)])
def test_clocks_may_disagree_on_half_of_the_calls(strayed: int, fine: int) -> None:
    agreement.check([STRAYED] * strayed + [FINE] * fine, [FINE] * 5)


def test_clocks_that_keep_disagreeing_reject_the_candidate_alone() -> None:
    with pytest.raises(Rejected) as rejected:
        agreement.check([STRAYED] * 3 + [FINE] * 2, [STRAYED] * 2 + [FINE] * 3)
    assert (rejected.value.outcome, rejected.value.property) == (Outcome.TAMPERED, "clock")


def test_clocks_that_disagree_on_both_sides_are_the_machines_fault() -> None:
    with pytest.raises(JudgeFault, match="on a quieter machine"):
        agreement.check([STRAYED] * 5, [STRAYED] * 3 + [FINE] * 2)
