"""Kernels for GPUs alone: no CPU track, no baseline in C, and everything else of a kernel."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from judge_rank import rank
from kernels import TWICE, TWICE_C, TWICE_FILES, TWICE_GPU, TWICE_GPU_FILES, TWICE_HIP, court, order, write_kernel

from bench import worker
from bench.calibrate import plan
from bench.errors import ConfigError, UsageError
from bench.grade import grade
from bench.judge.schemas import Language, Outcome
from bench.records import WarmOrder
from bench.start import Start, start_material
from bench.task import Task, find_task, load_task
from bench.validate import Verdict, validate, worst
from bench.warm import warm
from cluster.study.problems import problems_of
from cluster.study.settings import JobSettings


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A corpus of one kernel for CPUs and one, `twice`, that is for GPUs alone and comes before it."""
    root = tmp_path / "tasks"
    write_kernel(root, TWICE_GPU, TWICE_GPU_FILES)
    files = {name: text.replace("twice(", "zwice(") for name, text in TWICE_FILES.items()}
    write_kernel(root, TWICE | {"name": "zwice"}, files)
    monkeypatch.setenv("KCOURT_TASKS_DIR", str(root))
    return root


@pytest.fixture
def twice(corpus: Path) -> Task:
    return find_task("twice")


def test_its_baselines_for_gpus_are_what_defines_it(twice: Task) -> None:
    assert (twice.baselines, twice.defining_baselines) == ([], twice.gpu_baselines)
    assert set(twice.files) == {"manifest", "reference", "baseline:baseline.hip"}
    (twice.folder / "baseline.hip").write_text(TWICE_HIP.format("if (i < n) out[i] = x[i] * 2;"))
    assert load_task(twice.folder).hash != twice.hash


@pytest.mark.usefixtures("emulated_alone")
def test_validation_tries_the_reference_and_all_controls(twice: Task) -> None:
    checks = list(validate(twice, court()))
    assert {"reference", "baseline.hip", "honest_sum.hip", "wrong_tail.hip"} <= {check.check for check in checks}
    assert worst(checks) in (Verdict.PASS, Verdict.WARN), checks


def test_validation_names_what_is_broken(twice: Task) -> None:
    (twice.folder / "reference.py").write_text("def twice(x, out, n):\n    out[...] = y\n")
    found = {check.check: check.note for check in validate(load_task(twice.folder), court())}
    assert "NameError" in found["reference"] and "honest_sum.hip" not in found


def test_a_file_in_c_is_refused(kcourt: Callable[..., Any], corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.c").write_text(TWICE_C.format(""))
    ran = kcourt("grade", "twice", "mine.c", "--allow-sandbox", "limits")
    assert ran.code == 2
    assert "twice is written in hip, cuda, triton, not in c; it is a kernel for GPUs alone" in ran.err


@pytest.mark.usefixtures("emulated_alone")
def test_a_file_in_hip_is_solved(kcourt: Callable[..., Any], corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.hip").write_text(TWICE_GPU_FILES["controls/honest_back.hip"])
    ran = kcourt("grade", "twice", "mine.hip", "--allow-sandbox", "limits", "--json", env={"RUN_ROOT": str(tmp_path)})
    assert (ran.code, ran.json["outcome"], ran.json["score"]) == (0, "solved", None)


def test_it_is_shown_with_its_baseline(kcourt: Callable[..., Any], corpus: Path) -> None:
    assert "baseline.hip" in kcourt("task", "show", "twice").out


@pytest.mark.parametrize("languages", [[], [Language.HIP]], ids=["cpus", "gpus"])
def test_a_judge_tries_itself_on_a_kernel_for_cpus(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, languages: list[Language]
) -> None:
    tried: list[tuple[str, str]] = []
    monkeypatch.setattr(worker, "must_solve", lambda task, path, _: tried.append((task.name, path.suffix)))
    worker.self_grade(court(), languages)
    assert tried == [("zwice", ".c"), ("twice", ".hip")][: 1 + len(languages)]


def test_a_judge_of_nothing_else_tries_itself_on_one_for_gpus(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    monkeypatch.setattr(worker, "must_solve", lambda task, path, _: tried.append(path.name))
    monkeypatch.setattr(worker, "select", lambda _: [find_task("twice")])
    worker.self_grade(court())
    assert tried == ["baseline.hip"]


def test_a_judge_warms_it_and_names_its_baseline(corpus: Path, tmp_path: Path) -> None:
    warm(WarmOrder(kernel="twice", languages=(Language.HIP,)), court())
    with rank(tmp_path) as running:
        assert list(running.get("/baseline/twice").json()["denominators"]) == ["baseline.hip"]
        assert running.get("/task/twice").json()["language"] == "hip"
        answer = running.post("/score", {"kernel": "twice", "language": "c", "source": "int x;"})
        assert answer.status_code == 400 and "for GPUs alone; send one of those" in answer.text


def test_no_cpu_is_calibrated_with_it(corpus: Path) -> None:
    with pytest.raises(UsageError, match="for GPUs alone are: twice; take others"):
        plan([find_task("zwice"), find_task("twice")], inputs=16, quick=True)


def test_its_start_material_is_its_reference_and_its_baseline(twice: Task) -> None:
    assert set(start_material(twice, Start.HIP)) == {"reference.py", "baseline.hip"}
    assert set(start_material(twice, Start.C)) == {"reference.py"}


def test_a_job_of_a_cpus_language_does_not_take_it(corpus: Path) -> None:
    settings = JobSettings(setup="s", kernels="twice,zwice")
    with pytest.raises(ConfigError, match=r"twice is written in hip, cuda, triton, not in c; .*leave the kernel out"):
        problems_of(settings)
    assert [one.kernel for one in problems_of(JobSettings(setup="s", kernels="twice", language="hip"))] == ["twice"]


@pytest.mark.usefixtures("emulated_alone")
@pytest.mark.parametrize(("dtype", "kind"), [("float16", "__half"), ("bfloat16", "__hip_bfloat16")])
def test_arrays_of_16_bit_floats_are_drawn_and_compared(tmp_path: Path, dtype: str, kind: str) -> None:
    arrays = {name: TWICE["arguments"][name] | {"dtype": dtype} for name in ("x", "out")}
    task = load_task(write_kernel(tmp_path, TWICE_GPU | {"arguments": TWICE["arguments"] | arrays}, TWICE_GPU_FILES))
    for factor, outcome in (("2.0f", Outcome.SOLVED), ("2.1f", Outcome.WRONG)):
        source = TWICE_HIP.format(f"if (i < n) out[i] = x[i] * {kind}({factor});").replace("real float", f"real {kind}")
        source = f"#include <hip/hip_bf16.h>\n#include <hip/hip_fp16.h>\n{source}"
        report = grade(order(source, Language.HIP, kernel="twice"), court(), task)
        assert (report.outcome, report.property) == (outcome, None if outcome is Outcome.SOLVED else "values"), report
