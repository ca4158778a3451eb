"""CUDA and Triton: what their files and entry points look like, and what is said of them where there is no GPU."""

from pathlib import Path

import pytest
from judge_rank import GOOD, rank
from kernels import court, graded, write_kernel

from bench import abi
from bench.errors import EnvironmentFault, UsageError
from bench.judge.schemas import GPU_LANGUAGES, WITHOUT_A_GPU, Language, not_graded
from bench.task import find_task, load_task
from bench.worker import self_grade

CUDA, TRITON = Language.CUDA, Language.TRITON


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("rmsnorm.cu", CUDA),
        ("rmsnorm_triton.py", TRITON),
        ("some/where/honest_rows_triton.py", TRITON),
        ("triton.py", Language.PYTHON),
        ("rmsnorm_triton.py.c", Language.C),
        ("_triton.py", Language.PYTHON),
        ("rmsnorm.triton.py", Language.PYTHON),
        ("rmsnorm_triton.hip", Language.HIP),
    ],
)
def test_a_files_name_says_its_language(name: str, language: Language) -> None:
    assert Language.of(name) is language


@pytest.mark.parametrize("name", ["rmsnorm", ".cu", ".py", "rmsnorm.CU", "rmsnorm.py/", "rmsnorm_triton", ""])
def test_another_name_says_none(name: str) -> None:
    if name.endswith("/"):
        assert Language.of(name) is Language.PYTHON, "a path, and not a text"
    else:
        with pytest.raises(ValueError, match=r"known: .*\.cu \(cuda\), _triton\.py \(triton\)"):
            Language.of(name)


@pytest.mark.parametrize("language", Language)
def test_a_submissions_file_is_of_its_language(language: Language) -> None:
    assert Language.of(f"rmsnorm{language.suffix}") is language


def test_entry_points() -> None:
    task = find_task("axpy")
    in_c = "axpy(const float *x, const float *y, float *out, int64_t n, float a"
    assert abi.declaration(task, CUDA) == f'extern "C" void {in_c}, cudaStream_t stream);'
    assert abi.declaration(task, TRITON) == "def axpy(x, y, out, n, a):"


def test_hip_in_a_manifest_stands_for_every_language_of_gpus(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    plain = load_task(write_kernel(tmp_path / "c"))
    assert not GPU_LANGUAGES.intersection(plain.manifest.languages)
    for languages in (["hip", "c"], ["c", "triton", "hip"]):
        changed = plain.manifest.model_dump(mode="json", include={"languages", "gpu"}) | {"languages": languages}
        found = type(plain.manifest).model_validate(plain.manifest.model_dump() | changed | {"gpu": {}})
        assert [*found.languages[: len(languages)]] == languages
        assert sorted(found.languages) == ["c", "cuda", "hip", "triton"]


@pytest.mark.parametrize("language", Language)
def test_without_a_gpu_all_but_cuda_and_triton_is_graded(language: Language) -> None:
    graded_on = [device for device in WITHOUT_A_GPU if language in device.languages]
    assert bool(not_graded(language)) is (language in (CUDA, TRITON))
    assert len(graded_on) == (language not in (CUDA, TRITON))


SAID = "needs a GPU, and is not graded on cpu and emulated; see with `kcourt build`"


@pytest.mark.parametrize(("name", "language"), [("mine.cu", CUDA), ("mine_triton.py", TRITON)])
def test_a_grade_without_a_gpu_is_a_usage_error(kcourt, tmp_path, name, language) -> None:
    (tmp_path / name).write_text("x = 1\n")
    ran = kcourt("grade", "axpy", name)
    assert (ran.code, f"{name}: {language} {SAID}" in ran.err) == (2, True), ran.err


@pytest.mark.parametrize("language", [CUDA, TRITON])
def test_an_order_without_a_gpu_is_not_graded(language: Language) -> None:
    with pytest.raises(UsageError, match=f"{language} {SAID}"):
        graded("x = 1\n", language)


@pytest.mark.parametrize("language", [CUDA, TRITON])
def test_a_judge_without_a_gpu_is_unfit_for_such_a_setup(language: Language) -> None:
    with pytest.raises(EnvironmentFault, match=f"a setup is written in {language}: {language} {SAID}"):
        self_grade(court(), [language])


def test_a_judge_without_a_gpu_refuses_such_a_request(tmp_path: Path) -> None:
    with rank(tmp_path) as running:
        answer = running.post("/score", GOOD | {"language": "cuda"})
        assert answer.status_code == 400
        assert answer.json()["error"]["code"] == "wrong_language" and SAID in answer.json()["error"]["message"]
        contract = running.get("/task/axpy?language=triton").json()
    assert contract["file_name"] == "axpy_triton.py" and contract["signature"] == "def axpy(x, y, out, n, a):"
