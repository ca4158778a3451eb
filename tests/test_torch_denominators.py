"""What a grade on a GPU is measured against: baselines race once, PyTorch too, and later grades start the fastest."""

import uuid
from dataclasses import replace
from importlib.util import find_spec
from types import SimpleNamespace

import pytest
from kernels import TWICE_GPU, TWICE_GPU_FILES, TWICE_HIP, copy_kernel, court, order, write_kernel
from played import played_court

from bench.build import torch_build
from bench.build.torch_build import Mode
from bench.devices.card import Card
from bench.grade import grade
from bench.judge.schemas import Language, Outcome, Preset
from bench.measure import sampling
from bench.race import Kept, Race, contenders, outcome, policy, policy_stamp
from bench.records import WarmOrder
from bench.runner.buffers import Arena
from bench.runner.device_host import Zeros
from bench.task import find_task, load_task
from bench.warm import warm

TORCH = not torch_build.lacking(find_task("axpy"))
NEEDS_TORCH = pytest.mark.skipif(not TORCH, reason="torch and triton are not installed")
SLOW = TWICE_HIP.format("for (volatile int spent = 0; spent < 200; spent++) {} if (i < n) out[i] = 2 * x[i];")
IN_TORCH = "def twice(x, out, n):\n    out.copy_(2 * x)\n"


def twice(folder, baselines=("baseline.hip",), in_torch=None):
    """A kernel for GPUs that nobody has raced yet: its baselines are a slow one and, if asked for, a fast one."""
    files = TWICE_GPU_FILES | {"baseline.hip": SLOW, "fast.hip": TWICE_GPU_FILES["baseline.hip"]}
    if in_torch:
        files["torch_reference.py"] = in_torch
    new = {"gpu": {"baselines": baselines}, "summary": str(uuid.uuid4())}
    return load_task(write_kernel(folder, TWICE_GPU | new, files))


def graded(task, **changes):
    source = TWICE_GPU_FILES["controls/honest_sum.hip"]
    found = grade(order(source, Language.HIP, kernel=task.name, **changes), played_court(), task)
    assert found.outcome is Outcome.SOLVED, (found.detail, found.log)
    return found


def test_baselines_race_once_and_later_grades_start_the_fastest(tmp_path):
    task = twice(tmp_path, ("baseline.hip", "fast.hip"))
    first, second = graded(task), graded(task)
    times = first.provenance["race_ns"]
    assert times["baseline.hip"] > times["fast.hip"] > 0
    assert second.provenance["race_ns"] == times  # to the nanosecond: nobody has raced again
    for found in (first, second):
        assert found.denominator == found.provenance["denominator"]["name"] == "fast.hip"
        assert found.provenance["denominator_policy"] == "fastest of baseline.hip, fast.hip"
    itself = graded(task, protocol="mw4x5-aa")
    assert itself.denominator == "baseline.hip"
    assert not {"race_ns", "denominator_policy"} & itself.provenance.keys()


def test_a_race_is_had_ahead(tmp_path, monkeypatch):
    task = twice(tmp_path, ("baseline.hip", "fast.hip"))
    monkeypatch.setenv("KCOURT_TASKS_DIR", str(tmp_path))
    warm(WarmOrder(kernel="twice", presets=(Preset.S,)), played_court())
    kept = Kept.of(task.gpu_track, Preset.S, played_court()).read()
    assert kept and kept.fastest == "fast.hip"
    assert graded(task).provenance["race_ns"] == kept.medians_ns
    assert Kept.of(task.gpu_track, Preset.M, played_court()).read() is None


@pytest.mark.skipif(TORCH, reason="torch and triton are installed")
def test_a_judge_without_torch_says_so(tmp_path):
    found = graded(twice(tmp_path, in_torch=IN_TORCH))
    missing = " and ".join(name for name in ("torch", "triton") if find_spec(name) is None)
    assert found.provenance["race_left_out"] == dict.fromkeys(Mode, f"the judge's Python lacks {missing}")
    assert (found.denominator, found.provenance["denominator_policy"]) == ("baseline.hip", "baseline.hip")
    assert "race_ns" not in found.provenance


@NEEDS_TORCH
def test_pytorch_races(tmp_path):
    folder = copy_kernel(tmp_path, "rmsnorm")
    with (folder / "task.yaml").open("a") as manifest:
        manifest.write(f"# {uuid.uuid4()}\n")
    task = load_task(folder)
    source = task.gpu_baselines[0].read_text()
    found = grade(order(source, Language.HIP, kernel="rmsnorm"), played_court(), task)
    assert found.outcome is Outcome.SOLVED, (found.detail, found.log)
    assert found.provenance["race_ns"].keys() == {"baseline.hip", *Mode}, found.provenance
    assert found.provenance["denominator_policy"] == "fastest of baseline.hip, torch eager, torch.compile"
    assert found.denominator == min(found.provenance["race_ns"], key=found.provenance["race_ns"].__getitem__)
    assert "baseline:torch_reference.py" in {source.role for source in found.sources}


@NEEDS_TORCH
@pytest.mark.parametrize(
    ("name", "before", "after", "mode", "why"),
    [
        ("rmsnorm", "+ eps", "- eps", Mode.EAGER, "wrong"),
        ("rmsnorm", "import torch", "import torches", Mode.EAGER, "No module named 'torches'"),
        ("axpy", "", "", Mode.COMPILED, "compiled anew for every value"),
    ],
    ids=["wrong", "raises", "a scalar compiled in"],
)
def test_what_pytorch_cannot_do_is_left_out(tmp_path, name, before, after, mode, why):
    folder = copy_kernel(tmp_path, name)
    text = (folder / "torch_reference.py").read_text()
    (folder / "torch_reference.py").write_text(text.replace(before, after) + f"\n# {uuid.uuid4()}\n")
    task = load_task(folder).gpu_track
    found = outcome(task, Preset.S, played_court())
    assert why in found.left_out[mode], found
    assert "baseline.hip" in found.times_ns and mode not in found.times_ns


@NEEDS_TORCH
def test_what_has_won_and_fails_in_a_grade_is_the_judges_fault_once(tmp_path):
    task = twice(tmp_path, in_torch=IN_TORCH.replace("2", "3"))
    kept = Kept.of(task.gpu_track, Preset.S, played_court())
    kept.write(Race(sizes={"n": 2000}, times_ns={"baseline.hip": (9,), Mode.EAGER: (3,)}))
    source = TWICE_GPU_FILES["controls/honest_sum.hip"]
    found = grade(order(source, Language.HIP, kernel="twice"), played_court(), task)
    assert found.outcome is Outcome.JUDGE_FAULT and "the denominator of twice failed" in found.detail["message"]
    assert graded(task).denominator == "baseline.hip"


@pytest.mark.parametrize(
    ("best_ns", "times", "kept"),
    [
        (None, [9, 5, 5, 5, 5, 5], (5, 5, 5, 5, 5)),
        (2.4, [9, 5, 5, 5, 5, 5], (5,)),
        (2.5, [9, 5, 50, 50, 50, 50], (5, 50, 50, 50, 50)),
    ],
    ids=["the first", "far behind", "not so far"],
)
def test_who_is_far_behind_is_called_once(best_ns, times, kept):
    """The call before the first timed one warms up; times are in ns."""
    task, calls = find_task("axpy"), iter(times)
    session = SimpleNamespace(
        task=task,
        seed=bytes(32),
        prepare=lambda case, oracle_of: case,
        call=lambda *_, timed: SimpleNamespace(elapsed_ns=next(calls)),
    )
    assert sampling.race_ns(session, None, Preset.S, None, best_ns) == kept


RACED = Race(sizes={"n": 5}, times_ns={"baseline.hip": (9, 7, 8), "torch eager": (3,), "torch.compile": (1, 5, 2)})


def test_the_fastest_has_the_least_median():
    assert RACED.medians_ns == {"baseline.hip": 8, "torch eager": 3, "torch.compile": 2}
    assert RACED.fastest == "torch.compile"


def test_what_wins_and_fails_later_is_left_out_and_says_why(tmp_path):
    kept = Kept.of(twice(tmp_path).gpu_track, Preset.S, played_court())
    kept.write(RACED)
    kept.leave_out("torch.compile", "it failed")
    assert kept.read() == RACED.without("torch.compile", "it failed")
    found = kept.read()
    assert found and (found.fastest, found.left_out) == ("torch eager", {"torch.compile": "it failed"})


def test_a_damaged_outcome_is_none(tmp_path):
    kept = Kept.of(twice(tmp_path).gpu_track, Preset.S, played_court())
    kept.write(RACED)
    kept.path.write_text(kept.path.read_text()[:-9])
    assert kept.read() is None


def test_an_outcome_is_kept_by_all_that_it_depends_on(tmp_path, monkeypatch):
    def key(task=None, preset=Preset.S, judge=None):
        return Kept.of(task or first, preset, judge or played_court()).key

    first = twice(tmp_path / "first", in_torch=IN_TORCH).gpu_track
    card = Card(0, "a card", "sm_90", "580.1")
    keys = [key(), key(preset=Preset.M), key(twice(tmp_path / "second", in_torch=IN_TORCH).gpu_track)]
    keys += [key(judge=replace(played_court(), card=one)) for one in (card, replace(card, driver="590.2"))]
    monkeypatch.setattr(torch_build, "lacking", lambda task: "")
    for versions in ("torch 2.13.0", "torch 2.14.0"):
        monkeypatch.setattr(torch_build, "compiler", lambda versions=versions: versions)
        keys.append(key())
    (first.folder / "torch_reference.py").write_text("# another\n")
    keys.append(key())
    assert len(set(keys)) == len(keys)


def test_the_stamp_of_a_track_has_all_that_races(tmp_path, monkeypatch):
    task, kit = twice(tmp_path, in_torch=IN_TORCH).gpu_track, played_court().kit
    monkeypatch.setattr(torch_build, "lacking", lambda task: "torch is not here")
    without = policy_stamp(task, kit)
    assert policy(contenders(task, kit)[0]) == "baseline.hip"
    monkeypatch.setattr(torch_build, "lacking", lambda task: "")
    assert policy_stamp(task, kit) != without
    assert policy(contenders(task, kit)[0]) == "fastest of baseline.hip, torch eager, torch.compile"


def test_on_a_cpu_pytorch_does_not_race(tmp_path):
    task = find_task("axpy")
    assert [one.name for one in contenders(task, court().kit)[0]] == ["baseline.c"]


@pytest.mark.parametrize("mode", Mode)
def test_single_precision_is_single_precision(mode):
    assert "backends.cudnn.allow_tf32 = False" in torch_build.text(find_task("conv2d"), mode)


def test_row_pointers_are_rehearsed_as_such():
    task, sizes = find_task("spmv_csr").gpu_track, {"rows": 4, "cols": 9, "nnz": 10}
    arena = Arena(task, [sizes])
    try:
        (call,) = arena.rehearsals(False, [sizes, dict(reversed(sizes.items()))])
    finally:
        arena.close()
    assert call["ends"] == {0: 10}


@NEEDS_TORCH
def test_a_rehearsal_has_rows_of_one_length():
    import torch

    zeros = Zeros(torch, 1)
    zeros.ends = {"0": 10}
    assert zeros.tensor(0, 0, (5,), "int64").tolist() == [0, 2, 5, 7, 10]
    assert zeros.tensor(1, 0, (3,), "float32").tolist() == [0, 0, 0]
