"""The physics floor: what no kernel can beat on this machine, and when the floor is not applied."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from calibrations import CEILINGS, calibration
from kernels import HONEST_C, court, graded

from bench.gates.plausibility import MARGIN, against, against_copies, check, floor
from bench.judge.schemas import Outcome
from bench.measure import calibration as kept
from bench.measure.calibration import Calibration
from bench.records import Cell
from bench.task import find_task

AXPY, SGEMM = find_task("axpy"), find_task("sgemm")
N = 1_000_000
# axpy moves 12 bytes an element; the ceilings say 10 bytes per ns.
AXPY_FLOOR_NS = 12 * N / (10 * MARGIN)


def cell(candidate: Sequence[int], denominator: int = 10**9, **sizes: int) -> Cell:
    times = tuple(candidate)
    return Cell(
        index=0, sizes=sizes, ratio=1, raw=1, p=1, credited=False, order="c" * len(times),
        candidate_ns=times, denominator_ns=(denominator,) * len(times),
    )  # fmt: skip


def axpy(*candidate: int, denominator: int = 10**9) -> Cell:
    return cell(candidate, denominator, n=N)


def test_memory_bounds_a_kernel_that_moves_data() -> None:
    assert floor(AXPY, {"n": 1}, CEILINGS).ns == pytest.approx(AXPY_FLOOR_NS / N)
    found = floor(AXPY, {"n": N}, CEILINGS)
    assert found.ns == pytest.approx(AXPY_FLOOR_NS)
    assert found.reason == "1.2e+07 bytes at 12.5 GB/s"


def test_the_peak_bounds_a_kernel_that_computes() -> None:
    found = floor(SGEMM, {"m": 481, "n": 481, "k": 481}, CEILINGS)
    assert found.ns == pytest.approx(2 * 481**3 / (100 * MARGIN), rel=1e-9)
    assert found.reason == "2.23e+08 operations at 125.0 Gflop/s"


ABOVE, BELOW = round(AXPY_FLOOR_NS * 1.01), round(AXPY_FLOOR_NS * 0.99)


@pytest.mark.parametrize(
    ("cells", "suspect"),
    [
        pytest.param([axpy(ABOVE)], False, id="above"),
        pytest.param([axpy(BELOW)], True, id="below"),
        pytest.param([axpy(round(AXPY_FLOOR_NS), denominator=round(AXPY_FLOOR_NS))], False, id="both-at-the-floor"),
        pytest.param([axpy(ABOVE), axpy(BELOW)], True, id="one-input-below"),
        pytest.param([axpy(BELOW, ABOVE, ABOVE)], False, id="the-median-counts"),
        pytest.param([], False, id="nothing-timed"),
    ],
)
def test_below_the_floor_is_suspect(cells: list[Cell], suspect: bool) -> None:
    found = against(calibration(), AXPY, cells, cores=1)
    assert (found.suspect is not None) == suspect
    assert found.note.startswith("applied (calibration of 2026-01-02T03:04:05+00:00)")


def test_the_reason_has_the_figures() -> None:
    assert against(calibration(), AXPY, [axpy(100)], cores=1).suspect == (
        "100 ns at n=1000000 is below the physics floor of 960000 ns (1.2e+07 bytes at 12.5 GB/s)"
    )


@pytest.mark.parametrize(
    ("with_calibration", "made", "cores", "note"),
    [
        pytest.param(None, axpy(1), 1, "not applied (no calibration)", id="no-calibration"),
        pytest.param(
            calibration(),
            axpy(1),
            4,
            "not applied (calibrated on 1 timing cores, this slot has 4)",
            id="fewer-cores-calibrated",
        ),
        pytest.param(
            calibration(),
            axpy(1, denominator=BELOW),
            1,
            "not applied (the baseline itself beats the calibration of 2026-01-02T03:04:05+00:00)",
            id="the-baseline-beats-it",
        ),
    ],
)
def test_when_it_is_not_applied(with_calibration: Calibration | None, made: Cell, cores: int, note: str) -> None:
    found = against(with_calibration, AXPY, [made], cores)
    assert (found.suspect, found.note) == (None, note)


def test_a_calibration_on_more_cores_than_the_slot_has_is_applied() -> None:
    on_two = calibration(ceilings=CEILINGS.model_copy(update={"cores": 2}))
    assert against(on_two, AXPY, [axpy(BELOW)], cores=1).suspect is not None


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Calibrations are looked for in a folder of the test's own, and nowhere else."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("KCOURT_CACHE", raising=False)
    return tmp_path


def test_a_file_of_another_version_is_said_and_does_no_harm(own_cache: Path) -> None:
    kept.save(calibration()).write_text('{"made_at": "long ago"}')
    found = check(AXPY, [axpy(1)], court())
    assert found.suspect is None
    assert "is no calibration of this version; run `kcourt calibrate` again" in found.note


def calibrated_at(gb_per_s: float) -> Calibration:
    """A calibration that claims a memory bandwidth and nothing about the caches."""
    memory: dict[str, Any] = {"read_rate": gb_per_s, "copy_rate": gb_per_s}
    levels = (CEILINGS.memory.model_copy(update=memory),)
    return calibration(ceilings=CEILINGS.model_copy(update={"levels": levels}))


def test_a_grade_says_whether_the_floor_was_applied(own_cache: Path) -> None:
    without = graded(HONEST_C)
    assert without.provenance["plausibility"] == "not applied (no calibration)"
    kept.save(calibrated_at(1e6))
    with_one = graded(HONEST_C, protocol="mw4x5")
    assert with_one.outcome is Outcome.SOLVED and with_one.suspect is None
    assert with_one.provenance["plausibility"].endswith("above the floor on every input")
    assert isinstance(with_one.provenance["quiet"], list)


@pytest.mark.parametrize(("found_ns", "is_suspect"), [(BELOW, True), (ABOVE, False)], ids=["below", "above"])
def test_on_a_gpu_the_floor_is_what_copies_reach(found_ns: int, is_suspect: bool) -> None:
    found = against_copies(10, AXPY, [axpy(found_ns)])
    assert (found.suspect is not None) == is_suspect and "copies at 10 GB/s" in found.note
