"""Which cores a slot times on, and the lease that keeps two of them from timing at once."""

import fcntl
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.court import open_court
from bench.errors import EnvironmentFault
from bench.measure.cores import CorePlan, plan_cores
from bench.measure.lease import timing_lease

HOLDER = """
import sys
from bench.measure.lease import timing_lease
with timing_lease([int(core) for core in sys.argv[1:]]):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("count", [0, 1])
def test_one_core_is_refused(count: int) -> None:
    with pytest.raises(EnvironmentFault, match=f"grading needs two cores, .*this process may use {count}"):
        plan_cores(range(count))


@pytest.mark.parametrize(
    ("cores", "slots", "expected"),
    [
        (range(2), 1, [CorePlan((1,), 0, (0,), spare=False)]),
        (range(3), 1, [CorePlan((2,), 1, (0,), spare=True)]),
        (range(4), 1, [CorePlan((3,), 2, (0, 1), spare=True)]),
        (range(4), 2, [CorePlan((3,), 2, (0, 2), spare=False), CorePlan((1,), 0, (0, 2), spare=False)]),
        (range(2), 2, [CorePlan((1,), 0, (0,), spare=False)] * 2),
        ((4, 9, 2), 1, [CorePlan((9,), 4, (2,), spare=True)]),
    ],
    ids=["two", "three", "four", "four-two-slots", "two-two-slots", "gaps"],
)
def test_a_plan(cores: range, slots: int, expected: list[CorePlan]) -> None:
    assert [plan_cores(cores, slot, slots) for slot in range(slots)] == expected


@pytest.mark.parametrize("slots", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("count", [2, 3, 4, 8, 64])
def test_plans_fit_together(count: int, slots: int) -> None:
    plans = [plan_cores(range(count), slot, slots) for slot in range(slots)]
    timing = {core for plan in plans for core in plan.timing}
    for plan in plans:
        assert plan.clock not in timing
        assert plan.others and not timing & set(plan.others)
        assert plan.leased == tuple(sorted({*plan.timing, plan.clock}))
        if plan.spare:
            assert not {core for other in plans for core in other.leased} & set(plan.others)
    if 2 * slots <= count:
        assert len({core for plan in plans for core in plan.leased}) == 2 * slots
    for one in plans:
        for other in plans:
            assert one.leased == other.leased or not set(one.leased) & set(other.leased)


def test_a_court_may_be_told_its_cores() -> None:
    planned = open_court("limits")
    told = open_court("limits", timing_cores=(planned.cores.clock,), clock_core=planned.cores.timing[0])
    assert (told.cores.timing, told.cores.clock) == ((planned.cores.clock,), planned.cores.timing[0])


@pytest.fixture
def leases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KCOURT_LEASE_DIR", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("folder", ["missing", "file"])
def test_a_folder_that_cannot_hold_leases_is_named(leases: Path, monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    (leases / "file").write_text("")
    monkeypatch.setenv("KCOURT_LEASE_DIR", str(leases / folder))
    with (
        pytest.raises(EnvironmentFault, match=rf"{folder}/kernelcourt-core-7\.next: .* set KCOURT_LEASE_DIR to"),
        timing_lease([7]),
    ):
        pass


@pytest.fixture
def holder(leases: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that times on cores 3 and 5."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, "5", "3"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        yield process
        process.kill()


def is_leased(folder: Path, core: int, part: str = "lock") -> bool:
    fd = os.open(folder / f"kernelcourt-core-{core}.{part}", os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def test_a_lease_keeps_another_process_out_until_it_is_given_back(leases: Path, holder: subprocess.Popen[str]) -> None:
    assert is_leased(leases, 3) and is_leased(leases, 5)
    with timing_lease([4]):
        pass
    holder.communicate("", timeout=60)
    assert not is_leased(leases, 3)
    with timing_lease([3, 5, 3]):
        assert is_leased(leases, 3) and is_leased(leases, 5)
    assert not is_leased(leases, 5)


def test_a_killed_holder_frees_its_lease(leases: Path, holder: subprocess.Popen[str]) -> None:
    got_it = threading.Event()

    def wait_for_it() -> None:
        with timing_lease([5, 6]):
            got_it.set()

    waiting = threading.Thread(target=wait_for_it, daemon=True)
    waiting.start()
    assert not got_it.wait(0.2)
    holder.kill()
    assert got_it.wait(60)
    waiting.join(60)
    assert not is_leased(leases, 5)


def test_who_gives_a_lease_back_and_asks_again_goes_behind_who_waits(leases: Path) -> None:
    order: list[str] = []

    def wait_for_it() -> None:
        with timing_lease([2]):
            order.append("who waits")

    waiting = threading.Thread(target=wait_for_it, daemon=True)
    with timing_lease([2]):
        waiting.start()
        while not is_leased(leases, 2, "next"):
            assert waiting.is_alive()
    with timing_lease([2]):
        order.append("who comes back")
    waiting.join(60)
    assert order == ["who waits", "who comes back"]


def test_a_lease_is_given_back_when_the_work_fails(leases: Path) -> None:
    with pytest.raises(RuntimeError), timing_lease([1]):
        raise RuntimeError
    assert not is_leased(leases, 1)
