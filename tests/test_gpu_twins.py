"""Baselines for GPUs over `double`, on the emulator: to the accuracy of float64 they give what the references give."""

import contextlib
import math
import shutil

import numpy as np
import pytest
from kernels import court

from bench.build import builder
from bench.inputs import Case, fuzzed_cases
from bench.judge.schemas import Language, Preset
from bench.measure.session import Session
from bench.measure.stopwatch import Stopwatch
from bench.native import helper
from bench.reference import Inputs, Twin, numpy_oracle
from bench.runner.buffers import Arena
from bench.task import Sizes, Task, select
from bench.tolerance import Oracle

pytestmark = [
    pytest.mark.skipif(not shutil.which("g++"), reason="g++ is not installed"),
    pytest.mark.xdist_group("gpu_twins"),
]

SEED = bytes(range(32))
TRACKS = [task.gpu_track for task in select("all") if task.gpu_baselines]
ROUNDINGS = 1e6
UNIT, SMALLEST = 2.0**-53, 2.0**-1074


def cases(task: Task) -> list[Case]:
    """Preset S, and two sizes below it with other families of values."""
    return [Case("twins", "s", task.size(Preset.S)), *list(fuzzed_cases(task, SEED, "twins", 3))[1:]]


def assert_agree(task: Task, sizes: Sizes, by_twin: Oracle, by_numpy: Oracle) -> None:
    """Outputs differ by what a kernel in float64 may be off by, magnitudes by some roundings of their own."""
    # Where the bound is that of a coarser type on the way, `reduction` counts the roundings to that type alone; those
    # of a large score grow with it, and more so behind the exponential.
    length = max(float(task.manifest.reduction(sizes)), 1.0 if task.manifest.intermediates is None else ROUNDINGS)
    factor = task.manifest.tolerance * UNIT * math.sqrt(length)
    floor = task.manifest.tolerance * length * SMALLEST
    for name, expected in by_numpy.expected.items():
        magnitude = by_numpy.magnitude.get(name)
        found = helper.compare(by_twin.expected[name], expected, magnitude, factor, floor)
        assert not found.count, (name, sizes, found)
    assert by_twin.magnitude.keys() == by_numpy.magnitude.keys()
    for name, magnitude in by_numpy.magnitude.items():
        np.testing.assert_allclose(by_twin.magnitude[name], magnitude, rtol=1e-12, err_msg=f"{name} at {sizes}")


@pytest.mark.parametrize("wave", [64, 32])
@pytest.mark.parametrize("task", TRACKS, ids=lambda task: task.name)
def test_the_twin_of_a_baseline_in_hip_agrees_with_the_reference(
    task: Task, wave: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert task.manifest.gpu is not None
    if wave not in task.manifest.gpu.waves:
        pytest.skip(f"{task.name} need not be right on waves of {wave}")
    monkeypatch.setattr(builder, "TWIN", (*builder.TWIN, f"-DKC_WAVE={wave}"))
    twin = Twin(court().sandbox, task)

    def compared(inputs: Inputs, sizes: Sizes) -> Oracle:
        by_twin = twin.oracle(inputs, sizes)
        assert_agree(task, sizes, by_twin, numpy_oracle(task, inputs, sizes))
        return by_twin

    tried = cases(task)
    with contextlib.closing(Arena(task, [case.sizes for case in tried])) as arena:
        session = Session(task, SEED, arena, Stopwatch())
        for case in tried:
            session.prepare(case, compared)


@pytest.mark.parametrize("task", TRACKS, ids=lambda task: task.name)
def test_a_magnitude_that_a_reference_has_is_in_the_first_baseline_for_gpus(task: Task) -> None:
    """At large presets NumPy would take minutes for it."""
    needed = b"def magnitude(" in task.files["reference"]
    assert needed == (f"void {task.name}_magnitude(".encode() in task.gpu_baselines[0].read_bytes())


def test_a_twin_is_built_anew_when_the_headers_of_the_emulator_change(
    monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    sandbox, baseline = court().sandbox, TRACKS[0].baselines[0]
    before = builder.twin(sandbox, baseline)
    assert before.language is Language.HIP and builder.twin(sandbox, baseline).path == before.path
    headers = shutil.copytree(builder.emulator.HEADERS, tmp_path / "headers")
    (headers / "hip" / "more.h").write_text("/* one more */\n")
    monkeypatch.setattr(builder.emulator, "HEADERS", headers)
    assert builder.twin(sandbox, baseline).path != before.path
