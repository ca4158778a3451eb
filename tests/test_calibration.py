"""`kcourt calibrate`: its figures by table, known ratios by construction, where the result is kept, the command."""

import math
import time
from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from calibrations import CEILINGS, calibration
from conftest import Ran
from judge_rank import rank
from kernels import court

from bench import calibrate
from bench.calibrate import Plan, climb, plan
from bench.devices import cpu
from bench.errors import EnvironmentFault, JudgeFault, UsageError
from bench.judge.schemas import Language, Outcome, Preset
from bench.judge.service import CALIBRATION_LOOK_S
from bench.measure import calibration as kept
from bench.measure import ceilings, ladder, summaries
from bench.measure.calibration import Calibration
from bench.measure.statistics import chance_credit, credit
from bench.records import Cell, GradeReport
from bench.task import find_task

Kcourt = Callable[..., Ran]


# Figures


@pytest.mark.parametrize("runs", [2, 3, 4, 5])
def test_chance_credit_is_what_the_test_does_to_all_orders(runs: int) -> None:
    """Every way to deal 2n different times to two sides is alike under chance; count what is credited."""
    places = {frozenset(order[:runs]) for order in permutations(range(2 * runs), runs)}
    dealt = [credit(sorted(own), sorted({*range(2 * runs)} - own), 0.1).p < 0.1 for own in places]
    assert chance_credit(runs, 0.1) == pytest.approx(sum(dealt) / len(dealt))


def test_chance_credits_fifteen_percent_at_five_runs() -> None:
    assert chance_credit(5, 0.1) == pytest.approx(19 / 126)


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"),
    [
        # Wilson's interval; compare Brown, Cai and DasGupta (2001).
        pytest.param(0, 10, 0.0, 0.2775, id="none"),
        pytest.param(60, 400, 0.1184, 0.1883, id="some"),
        pytest.param(10, 10, 0.7225, 1.0, id="all"),
    ],
)
def test_a_share_has_its_interval(hits: int, of: int, low: float, high: float) -> None:
    found = summaries.share(hits, of)
    assert (found.rate, found.low, found.high) == pytest.approx((hits / of, low, high), abs=1e-4)


@pytest.mark.parametrize(
    ("lows", "expected"),
    [
        pytest.param([1.0] * 10, 1.0, id="no-width"),
        pytest.param([0.8] * 10, 1.25, id="all-alike"),
        pytest.param([0.5, *[0.8] * 99], 1.25, id="one-wide-of-a-hundred"),
        pytest.param([*[0.5] * 20, *[0.8] * 80], 2.0, id="one-wide-of-five"),
    ],
)
def test_what_can_be_resolved(lows: list[float], expected: float) -> None:
    assert summaries.resolves(lows) == pytest.approx(expected)


def report(score: float, interval: tuple[float, float], cells: list[Cell], preset: Preset = Preset.S) -> GradeReport:
    return GradeReport(
        grade_id="g",
        outcome=Outcome.SOLVED,
        score=score,
        raw_ratio=score,
        interval=interval,
        cells=tuple(cells),
        protocol="mw4x5-aa",
        preset=preset,
        seed_commitment="",
        sandbox="limits",
    )


def cell(credited: bool, order: str, candidate: tuple[int, ...], denominator: tuple[int, ...]) -> Cell:
    return Cell(
        index=0,
        sizes={},
        ratio=1,
        raw=1,
        p=1,
        credited=credited,
        candidate_ns=candidate,
        denominator_ns=denominator,
        order=order,
    )


def test_against_itself_counts_credits_intervals_and_order() -> None:
    # Whoever goes first needs 10 % more.
    slow_first = cell(True, "cd", (110, 100), (100, 110))
    level = cell(False, "dc", (100, 110), (110, 100))
    found = summaries.against_itself(
        "mw4x5-aa",
        [
            ("a", report(1.0, (0.9, 1.1), [slow_first, level])),
            ("a", report(1.2, (1.1, 1.3), [slow_first, level], Preset.M)),
            ("b", report(0.9, (0.8, 0.95), [level, level])),
        ],
    )
    assert (found.grades, found.credited.hits, found.credited.of) == (3, 2, 6)
    assert (found.covered.hits, found.covered.of) == (1, 3)
    assert found.order_effect.median == pytest.approx(1.1) and found.order_effect.of == 12
    assert found.spread == pytest.approx(0.19)
    assert [(track.kernel, track.preset, track.inputs, track.credited) for track in found.tracks] == [
        ("a", "S", 2, 1),
        ("a", "M", 2, 1),
        ("b", "S", 2, 0),
    ]


@pytest.mark.parametrize(
    ("interval", "holds_one"),
    [((0.9, 1.1), True), ((1.0, 1.2), True), ((0.8, 1.0), True), ((1.1, 1.3), False), ((0.8, 0.95), False)],
)
def test_an_interval_is_counted_where_it_holds_one(interval: tuple[float, float], holds_one: bool) -> None:
    pairs = cell(False, "cd", (1, 1), (1, 1))
    found = summaries.against_itself("mw4x5-aa", [("a", report(1, interval, [pairs]))])
    assert found.covered.hits == holds_one
    assert found.resolves == found.tracks[0].resolves == pytest.approx(1 / interval[0])


@pytest.mark.parametrize(
    ("credited", "above"),
    [pytest.param(60, False, id="15-percent"), pytest.param(72, False, id="18"), pytest.param(90, True, id="22.5")],
)
def test_above_chance_means_significantly(credited: int, above: bool) -> None:
    cells = [cell(number < credited, "c", (1,), (1,)) for number in range(400)]
    found = summaries.against_itself("mw4x5-aa", [("a", report(1, (0.9, 1.1), cells))])
    assert found.above_chance is above
    assert found.expected == pytest.approx(0.1508, abs=1e-4)


def test_a_rung_is_held_against_its_truth() -> None:
    found = summaries.rung(1.25, [1.25, 1.2, 1.25, 1.5], [(1.2, 1.25), (1.1, 1.24), (1.0, 1.1), (1.25, 1.6)])
    assert (found.raw.median, found.covered) == (1.25, 2)
    assert found.worst_error == pytest.approx(0.2)


# Known ratios


def test_the_ladder_has_the_ratios_that_it_is_for() -> None:
    assert [step.truth for step in ladder.STEPS] == [1.05, 1.1, 1.25, 2, 4]


@pytest.mark.parametrize("step", ladder.STEPS, ids=lambda step: f"{step.truth:.2f}")
def test_a_ladder_kernel_does_its_share_of_passes(step: ladder.Step, tmp_path: Path) -> None:
    task = ladder.write(tmp_path, step)
    passes = {text: passes_of(text) for text in (task.baselines[0].read_text(), ladder.source(ladder.CANDIDATE_UNITS))}
    assert [*passes.values()] == [step.units * 1000, 20_000]
    assert passes_of(task.baselines[0].read_text()) / 20_000 == step.truth


def passes_of(source: str) -> int:
    return int(source.split("#define PASSES ")[2].split()[0])


@pytest.mark.timing
def test_a_ratio_of_four_is_found() -> None:
    wanted = Plan((), (), inputs=1, rung_grades=3, ladder_preset=Preset.M, quick=True)
    found = climb(court(), wanted, ladder.STEPS[-1], lambda *_: None)
    assert found.raw.of == 3
    assert found.raw.median == pytest.approx(4, rel=0.15)


def test_a_calibration_stops_at_a_kernel_of_its_own_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = ladder.write(tmp_path, ladder.STEPS[0])
    order = calibrate.ladder_order(Preset.S, Language.C, "void ladder(", "mw2x5")
    with pytest.raises(JudgeFault, match="the judge's own ladder is build_failed"):
        calibrate.solved(order, court(), task)


# Plan


@pytest.mark.parametrize(
    ("inputs", "grades"),
    [pytest.param(400, 100, id="whole"), pytest.param(1, 1, id="one"), pytest.param(5, 2, id="rounded-up")],
)
def test_at_least_as_many_inputs_as_asked_for(inputs: int, grades: int) -> None:
    assert plan([find_task("axpy")], inputs, quick=True).aa_grades == grades


@pytest.mark.parametrize("inputs", [0, -1])
def test_a_plan_without_inputs_is_refused(inputs: int) -> None:
    with pytest.raises(UsageError, match="at least one kernel and one timed input"):
        plan([find_task("axpy")], inputs, quick=True)


# Ceilings


def fake_cache(root: Path, index: int, level: int, kind: str, size: str) -> None:
    folder = root / "cpu3" / "cache" / f"index{index}"
    folder.mkdir(parents=True)
    for name, value in {"level": level, "type": kind, "size": size}.items():
        (folder / name).write_text(f"{value}\n")


def test_cache_sizes_are_those_of_the_data_caches(tmp_path: Path) -> None:
    for index, row in enumerate(
        [(1, "Data", "32K"), (1, "Instruction", "64K"), (3, "Unified", "2M"), (2, "Unified", "1M")]
    ):
        fake_cache(tmp_path, index, *row)
    assert cpu.cache_sizes(3, tmp_path) == {"L1": 32 << 10, "L2": 1 << 20, "L3": 2 << 20}
    assert cpu.cache_sizes(4, tmp_path) == {}


@pytest.mark.parametrize(
    ("caches", "expected"),
    [
        pytest.param({}, 256 << 20, id="unknown"),
        pytest.param({"L3": 96 << 20}, 384 << 20, id="four-times"),
        pytest.param({"L3": 4 << 30}, 2 << 30, id="at-most"),
    ],
)
def test_the_memory_area_is_larger_than_the_caches(caches: dict[str, int], expected: int) -> None:
    assert ceilings.memory_area_bytes(caches) == expected


def test_the_better_of_two_measurements_has_each_higher_rate() -> None:
    memory = CEILINGS.memory.model_copy(update={"read_rate": 7.0, "copy_rate": 9.0})
    other = CEILINGS.model_copy(update={"levels": (CEILINGS.levels[0], memory), "float64_flops": 60.0})
    found = ceilings.better(CEILINGS, other)
    assert (found.memory.read_rate, found.memory.copy_rate, found.memory.best) == (10, 9, 10)
    assert (found.float32_flops, found.float64_flops, found.flops) == (100, 60, 100)


@pytest.mark.timing
def test_rates_of_this_machine_are_those_of_a_computer() -> None:
    found = ceilings.measure(court().cores.timing)
    assert found.cores == 1
    assert found.levels[-1].name == "memory"
    assert all(0.1 < rate < 10_000 for level in found.levels for rate in (level.read_rate, level.copy_rate))
    assert found.levels[0].best > found.memory.best
    assert 0.5 < found.float64_flops <= found.float32_flops * 1.2 < 2_000


# Where it is kept


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache folder is one of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("KCOURT_CACHE", raising=False)
    return tmp_path


def test_the_last_one_is_found_again(home: Path) -> None:
    assert kept.last() is None
    kept.save(calibration(seconds=1))
    kept.save(calibration(seconds=2))
    found = kept.last()
    assert found is not None and found.seconds == 2


def test_a_judge_with_a_cache_of_its_own_finds_the_users(home: Path) -> None:
    kept.save(calibration(seconds=1))
    assert kept.last(home / "judge") == calibration(seconds=1)


def test_a_cache_folder_comes_before_the_users(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.save(calibration(seconds=1))
    monkeypatch.setenv("KCOURT_CACHE", str(home / "mine"))
    kept.save(calibration(seconds=2))
    assert kept.last() == calibration(seconds=2)
    assert kept.last(home / "judge") == calibration(seconds=1)


def test_what_another_version_wrote_is_named(home: Path) -> None:
    path = kept.save(calibration())
    path.write_text("{}")
    with pytest.raises(EnvironmentFault, match=f"{path}: is no calibration of this version"):
        kept.last()


def test_a_folder_that_cannot_be_written_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "file").touch()
    monkeypatch.setenv("KCOURT_CACHE", str(home / "file"))
    with pytest.raises(EnvironmentFault, match=r"cannot be written .* set KCOURT_CACHE"):
        kept.save(calibration())


def test_health_carries_the_short_form(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with rank(home) as running:
        assert running.http.get("/health").json()["calibration"] is None
        monkeypatch.setenv("KCOURT_CACHE", running.config["cache_dir"])
        kept.save(calibration())
        deadline = time.monotonic() + 12 * CALIBRATION_LOOK_S
        while (found := running.http.get("/health").json()["calibration"]) is None and time.monotonic() < deadline:
            time.sleep(0.1)
    assert found == {
        "made_at": "2026-01-02T03:04:05+00:00",
        "quick": False,
        "empty_call_ns": 240,
        "inputs": 400,
        "false_credit": 0.15,
        "above_chance": False,
        "spread": 0.03,
        "resolves": 1.04,
        "memory_gb_per_s": 10,
    }


# The command


def test_show_prints_the_last_result(kcourt: Kcourt, home: Path) -> None:
    missing = kcourt("calibrate", "--show")
    assert (missing.code, missing.err) == (2, "error: this machine has no calibration yet; run `kcourt calibrate`\n")
    kept.save(calibration())
    ran = kcourt("calibrate", "--show")
    assert ran.code == 0, ran.err
    for text in (
        "not quiet: load 9.0 on 2 cores",
        "empty call: 240 ns (230 to 260 over 200 runners)",
        "empty call in Python: 900 ns (880 to 950 over 5 runners)",
        "A/A (mw4x5-aa): 15.0% (12.0% to 19.0%; 60 of 400) of inputs credited, not significantly above the 15.1%",
        "a kernel 1.040 times faster is shown as faster in nine grades of ten",
        "1.05: found 1.000, worst error 2.0%, 90 of 100 intervals hold it",
        "memory: read 10.0 GB/s, copy 8.0 GB/s",
    ):
        assert text in ran.out
    as_json = kcourt("calibrate", "--show", "--json", "--out", "copy.json")
    assert Calibration.model_validate(as_json.json) == calibration()
    assert Calibration.model_validate_json((home / "copy.json").read_text()) == calibration()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(("--inputs", "0"), "at least one kernel and one timed input", id="no-inputs"),
        pytest.param(("--kernels", "nosuch"), "'nosuch' is no kernel, suite or tag", id="unknown-kernel"),
        pytest.param(("--allow-sandbox", "none"), "'none' is no sandbox level", id="unknown-level"),
    ],
)
def test_a_wrong_call_is_a_usage_error(kcourt: Kcourt, arguments: tuple[str, ...], message: str) -> None:
    ran = kcourt("calibrate", *arguments)
    assert ran.code == 2 and message in ran.err


@pytest.mark.timing
def test_a_quick_calibration_from_end_to_end(kcourt_process: Kcourt, home: Path) -> None:
    ran = kcourt_process("calibrate", "--quick", "--json", "--kernels", "axpy,sgemm", "--allow-sandbox", "limits")
    assert ran.code == 0, ran.err
    assert ran.out.count("\n") == 1
    found = Calibration.model_validate(ran.json)
    own = found.against_itself
    assert (own.credited.of, own.grades, found.quick) == (16, 4, True)
    assert {(track.kernel, track.preset) for track in own.tracks} == {
        (kernel, preset) for kernel in ("axpy", "sgemm") for preset in ("S", "M")
    }
    assert found.empty_call_ns.of == 8 and 0 < found.empty_call_ns.median < 100_000
    assert found.empty_python_call_ns.of == 5 and found.empty_python_call_ns.median > 0
    assert own.resolves > 1 and own.order_effect.median == pytest.approx(1, rel=0.2)
    assert [rung.truth for rung in found.ladder] == [1.05, 1.1, 1.25, 2, 4]
    assert kept.last() == found
    assert math.isfinite(found.ceilings.memory.best) and np.isfinite(found.ceilings.flops)
