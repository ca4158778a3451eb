"""The check for a quiet machine: what is read of the kernel's files, and which warnings follow."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.measure import quiet
from bench.measure.cores import CorePlan
from bench.measure.quiet import Lookout, Seen, Ticks, governors, strangers, ticks, warnings

STAT = """\
cpu  100 0 50 900 5 0 3 42 7 0
cpu0 60 0 30 400 5 0 3 40 7 0
cpu1 40 0 20 500 0 0 0 2 0 0
cpu10 1 1 1 1 1 1 1 1 1 1
intr 12345 0
"""


@pytest.mark.parametrize(
    ("cores", "expected"),
    [
        pytest.param([0], Ticks(538, 40), id="one"),
        pytest.param([0, 1], Ticks(1100, 42), id="two"),
        pytest.param([10], Ticks(8, 1), id="no-prefix-is-taken-for-a-core"),
        pytest.param([], Ticks(0, 0), id="none"),
    ],
)
def test_ticks_of_some_cores(cores: list[int], expected: Ticks) -> None:
    assert ticks(STAT, cores) == expected


def test_ticks_between_two_looks() -> None:
    assert ticks(STAT, [0]).since(Ticks(100, 15)) == Ticks(438, 25)


QUIET = Seen(load=2.0, machine_cores=2, ticks=Ticks(200, 0), governors=("performance",))


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param(QUIET, [], id="quiet"),
        pytest.param(Seen(2.0, 2, Ticks(0, 0)), [], id="nothing-to-read"),
        pytest.param(Seen(9.0, 2, Ticks(200, 0)), ["load 9.0 on 2 cores; quiet is at most 2.5"], id="load"),
        pytest.param(Seen(9.0, 64, Ticks(200, 0)), [], id="the-same-load-on-a-large-node"),
        pytest.param(Seen(19.0, 64, Ticks(200, 0)), ["load 19.0 on 64 cores; quiet is at most 18.0"], id="large-node"),
        pytest.param(Seen(2.5, 1, Ticks(200, 0)), [], id="no-other-core"),
        pytest.param(
            Seen(2.0, 2, Ticks(200, 10)), ["the host took 5.0% of the timing cores' time away (steal)"], id="steal"
        ),
        pytest.param(Seen(2.0, 2, Ticks(20, 1)), [], id="one-tick-is-not-enough"),
        pytest.param(
            Seen(2.0, 2, Ticks(20, 2)), ["the host took 10.0% of the timing cores' time away (steal)"], id="two-ticks"
        ),
        pytest.param(Seen(2.0, 2, Ticks(200, 2)), [], id="one-percent-is-not-enough"),
        pytest.param(
            Seen(2.0, 2, Ticks(9, 0), governors=("performance", "powersave")),
            ["the timing cores' frequency governor is powersave, not performance"],
            id="governor",
        ),
        pytest.param(
            Seen(2.0, 2, Ticks(9, 0), strangers=("a (1)", "b (2)")),
            ["other processes ran on the timing cores: a (1), b (2)"],
            id="strangers",
        ),
        pytest.param(
            Seen(2.0, 2, Ticks(9, 0), strangers=tuple("abcde")),
            ["other processes ran on the timing cores: a, b, c, d, e"],
            id="as-many-strangers-as-are-named",
        ),
        pytest.param(
            Seen(2.0, 2, Ticks(9, 0), strangers=tuple("abcdefghijk")),
            ["other processes ran on the timing cores: a, b, c, d, e and 6 more"],
            id="more-strangers",
        ),
    ],
)
def test_warnings(seen: Seen, expected: list[str]) -> None:
    assert warnings(seen) == expected


def fake_proc(folder: Path, runnable: int) -> Path:
    """A /proc of seven processes; three of them are strangers to process 11 on core 1."""
    rows = {
        7: ("cc1", "R", 0x400000, 1),
        8: ("a) (b", "R", 0x400100, 1),
        9: ("sleeper", "S", 0x400000, 1),
        10: ("far", "R", 0x400000, 0),
        11: ("me", "R", 0x400000, 1),
        13: ("kworker/1:0", "R", 0x4208060, 1),
        14: ("ld", "R", 0x400000, 1),
    }
    for pid, (name, state, flags, core) in rows.items():
        (folder / str(pid)).mkdir()
        figures = " ".join(["0"] * 29)
        (folder / str(pid) / "stat").write_text(f"{pid} ({name}) {state} 1 1 1 0 -1 {flags} {figures} {core} 0 0\n")
    (folder / "12").mkdir()  # ended while we looked
    (folder / "self").mkdir()
    (folder / "loadavg").write_text(f"0.5 0.4 0.3 {runnable}/200 4711\n")
    return folder


def test_strangers_are_the_others_that_run_on_these_cores(tmp_path: Path) -> None:
    assert sorted(strangers([1], 11, fake_proc(tmp_path, runnable=2))) == ["a) (b (8)", "cc1 (7)", "ld (14)"]


def test_nothing_is_looked_at_when_nothing_else_can_run(tmp_path: Path) -> None:
    assert strangers([1], 11, fake_proc(tmp_path, runnable=1)) == []


def test_the_load_is_that_of_the_last_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (1e6, 0.0, 0.0))
    core = max(os.sched_getaffinity(0))
    found = Lookout(CorePlan((core,), core, (), spare=False)).warnings()
    assert found[0].startswith(f"load 1000000.0 on {os.cpu_count()} cores")


def test_governors_are_read_where_they_are(tmp_path: Path) -> None:
    (tmp_path / "cpu3" / "cpufreq").mkdir(parents=True)
    (tmp_path / "cpu3" / "cpufreq" / "scaling_governor").write_text("schedutil\n")
    assert governors([3, 4], tmp_path) == ("schedutil",)


def test_a_process_that_spins_on_a_timing_core_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quiet, "NAMED", 1000)  # a busy machine has more than are named
    core = max(os.sched_getaffinity(0))
    spin = f"import os; os.sched_setaffinity(0, {{{core}}}); print(flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", spin], stdout=subprocess.PIPE) as spinner:
        try:
            assert spinner.stdout is not None
            spinner.stdout.readline()
            found = Lookout(CorePlan((core,), core, (), spare=False)).warnings()
        finally:
            spinner.kill()
    assert any(f"({spinner.pid})" in warning for warning in found), found
