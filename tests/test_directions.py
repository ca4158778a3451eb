"""Directions: what agents start from and what they write; CUDA from HIP and back; `kcourt task stage` and `hipify`."""

import importlib.util
from pathlib import Path

import pytest
from kernels import write_kernel

from bench.build import nvidia
from bench.build.hipify import cuda_to_hip, hip_to_cuda
from bench.errors import ConfigError, EnvironmentFault, UsageError
from bench.judge.schemas import Language
from bench.start import STARTS, Start, lacks_start, start_material
from bench.task import find_task, load_task, select
from cluster.study.problems import problems_of, render_problems
from cluster.study.settings import JobSettings

SGEMM = find_task("sgemm")
GPU_KERNELS = [task for task in select("all") if any(Language.of(path) is Language.HIP for path in task.gpu_baselines)]
BY_NAME = {"argvalues": GPU_KERNELS, "ids": lambda task: task.name}
IN_CUDA = BY_NAME | {"argvalues": [task for task in GPU_KERNELS if not lacks_start(task, Start.CUDA)]}


@pytest.mark.parametrize(
    ("start", "names"),
    [
        (Start.NONE, []),
        (Start.NUMPY, ["reference.py"]),
        (Start.C, ["reference.py", "baseline.c"]),
        (Start.HIP, ["reference.py", "baseline.hip"]),
        (Start.CUDA, ["reference.py", "baseline.cu"]),
        (Start.TORCH, ["sgemm_torch.py"]),
    ],
)
def test_start_material(start, names):
    assert list(start_material(SGEMM, start)) == names


def test_start_material_in_triton_is_the_kernels_own_baseline(tmp_path):
    task = load_task(write_kernel(tmp_path))
    assert lacks_start(task, Start.TRITON) == "twice lacks baseline_triton.py, which start material 'triton' is"
    (task.folder / "baseline_triton.py").write_text("import triton\n")
    assert start_material(task, Start.TRITON)["baseline_triton.py"] == b"import triton\n"


@pytest.mark.parametrize("start", [Start.CUDA, Start.TORCH, Start.TRITON])
def test_start_material_that_a_kernel_lacks_is_named(tmp_path, start):
    with pytest.raises(UsageError, match=f"twice lacks .*, which start material '{start}' is; take another"):
        start_material(load_task(write_kernel(tmp_path)), start)


@pytest.mark.parametrize("task", **BY_NAME)
def test_every_kernel_for_gpus_can_be_started_from_hip_and_from_cuda_unless_it_shuffles(task):
    shuffles = any("__shfl" in path.read_text() for path in task.gpu_baselines)
    assert not lacks_start(task, Start.HIP) and bool(lacks_start(task, Start.CUDA)) == shuffles


@pytest.mark.parametrize("task", select("all"), ids=lambda task: task.name)
def test_every_kernel_can_be_started_from_torch(task):
    assert list(start_material(task, Start.TORCH)) == [f"{task.name}_torch.py"]


@pytest.mark.parametrize("task", **IN_CUDA)
def test_cuda_from_hip_has_no_name_of_hip_and_goes_back(task):
    hip = task.gpu_baselines[0].read_text()
    cuda, left = hip_to_cuda(hip)
    assert not left and "hip" not in cuda.replace("ship", "")
    assert "cudaStream_t stream" in cuda and "#include <cuda_runtime.h>" in cuda
    assert cuda_to_hip(cuda) == (hip, [])


@pytest.mark.parametrize("task", **IN_CUDA)
def test_cuda_from_hip_is_compiled_offline(kcourt, tmp_path, task):
    try:
        nvidia.find_nvcc()
    except EnvironmentFault as fault:
        pytest.skip(str(fault))
    (tmp_path / "baseline.cu").write_bytes(start_material(task, Start.CUDA)["baseline.cu"])
    done = kcourt("build", task.name, "baseline.cu", "--target", "sm_90", "--json")
    assert done.code == 0, done.err
    assert done.json["kernels"] and all(kernel["wave"] == 32 for kernel in done.json["kernels"])


def test_cuda_is_compiled_without_the_headers_that_are_ours(kcourt, tmp_path):
    try:
        nvidia.find_nvcc()
    except EnvironmentFault as fault:
        pytest.skip(str(fault))
    (tmp_path / "mine.cu").write_text(SGEMM.gpu_baselines[0].read_text())
    done = kcourt("build", "sgemm", "mine.cu", "--target", "sm_90")
    assert (done.code, "hip_runtime.h" in done.err) == (1, True), done.err


@pytest.mark.parametrize(
    ("hip", "cuda"),
    [
        ("hipError_t e = hipGetLastError();", "cudaError_t e = cudaGetLastError();"),
        ("#  include <hip/hip_fp16.h>", "#  include <cuda_fp16.h>"),
        ('#include "hip/hip_runtime.h"', '#include "cuda_runtime.h"'),
        ("int my_hipMalloc, hipster;", "int my_hipMalloc, hipster;"),
        ("hipHostMalloc(&p, n);", "cudaMallocHost(&p, n);"),
    ],
)
def test_names_of_hip_and_of_cuda(hip, cuda):
    assert hip_to_cuda(hip) == (cuda, [])
    assert cuda_to_hip(cuda)[0].endswith(hip)


@pytest.mark.parametrize(
    ("translate", "source", "left"),
    [
        (hip_to_cuda, "v = __shfl_down(v, 8) + __ballot(1); hipNothing();", ["__ballot", "__shfl_down", "hipNothing"]),
        (hip_to_cuda, "hipLaunchKernelGGL(k, 1, 1, 0, s);", ["hipLaunchKernelGGL"]),
        (hip_to_cuda, "#include <hip/hip_ext.h>", ["hip/hip_ext.h"]),
        (cuda_to_hip, "v = __shfl_down_sync(~0u, v, 8); __syncthreads();", ["__shfl_down_sync"]),
        (cuda_to_hip, "cudaNothing(); cublasCreate(&h);", ["cublasCreate", "cudaNothing"]),
    ],
)
def test_names_that_only_one_of_them_has_are_left_and_named(translate, source, left):
    text, found = translate(source)
    assert found == left and source in text


def test_hipify_prints_hip_and_names_what_is_left(kcourt, tmp_path):
    source = (
        "__global__ void k(float *x) { x[0] = __shfl_sync(~0u, x[0], 0); }\n"
        "void f(cudaStream_t s) { k<<<1, 1, 0, s>>>(0); }\n"
    )
    (tmp_path / "mine.cu").write_text(source)
    ran = kcourt("task", "hipify", "mine.cu")
    assert ran.code == 0 and ran.out == "#include <hip/hip_runtime.h>\n" + source.replace("cudaS", "hipS")
    assert ran.err == "mine.cu: left as they are: __shfl_sync; change them by hand\n"
    assert kcourt("task", "hipify", "mine.cu", "--json").json == {
        "file": "mine.cu",
        "hip": ran.out,
        "left": ["__shfl_sync"],
    }


DIRECTIONS = {
    ("none", "triton"): ("instruction2triton", "write axpy_triton.py", "in the folder: nothing"),
    ("torch", "hip"): ("torch2hip", "hipStream_t stream);", "==> axpy_torch.py <=="),
    ("torch", "triton"): ("torch2triton", "def axpy(x, y, out, n, a):", "torch.add("),
    ("hip", "hip"): ("hip2hip", "right with waves of 32 and 64 lanes", "==> baseline.hip <=="),
    ("cuda", "hip"): ("cuda2hip", "write axpy.hip", "==> baseline.cu <=="),
    ("cuda", "cuda"): ("cuda2cuda", "cudaStream_t stream);", "build: nvcc"),
    ("baseline", "c"): ("baseline2c", "build: gcc", "==> baseline.c <=="),
}


@pytest.mark.parametrize(("pair", "says"), DIRECTIONS.items(), ids=lambda value: value[0])
def test_stage_shows_what_the_agent_sees(kcourt, pair, says):
    start, language = pair
    ran = kcourt("task", "stage", "axpy", "--start", start, "--language", language)
    assert ran.code == 0, ran.err
    assert all(words in ran.out for words in says), ran.out
    found = kcourt("task", "stage", "axpy", "--start", start, "--language", language, "--json").json
    assert found["direction"] == says[0] and found["contract"]["language"] == language
    assert list(found["files"]) == list(start_material(find_task("axpy"), STARTS[start]))


@pytest.mark.skipif(not importlib.util.find_spec("triton"), reason="triton is not installed")
def test_the_example_in_triton_of_the_page_is_compiled(kcourt, tmp_path):
    page = (Path(__file__).parents[1] / "docs" / "gpu.md").read_text()
    (tmp_path / "axpy_triton.py").write_text(page.partition("```python\n")[2].partition("```")[0])
    ran = kcourt("build", "axpy", "axpy_triton.py", "--target", "gfx942", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["spills"] == 0 and len(ran.json["kernels"]) == 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--start", "hpi", "--language", "hip"), "no start material 'hpi'; did you mean 'hip'?"),
        (("--start", "none", "--language", "cobol"), "'cobol' is not one of"),
        (("--start", "triton", "--language", "triton"), "axpy lacks baseline_triton.py"),
        (("--language", "hip"), "Missing option '--start'"),
    ],
)
def test_a_direction_that_is_none_is_a_usage_error(kcourt, options, says):
    ran = kcourt("task", "stage", "axpy", *options)
    assert (ran.code, says in ran.err) == (2, True), ran.err


@pytest.mark.parametrize(
    ("start", "says"),
    [
        ("trition", "kernel 'axpy': no start material 'trition'; did you mean 'triton'?"),
        ("triton", "axpy lacks baseline_triton.py, which start material 'triton' is; set AGENT_START to another"),
    ],
)
def test_a_problem_whose_start_material_is_not_there_is_refused(tmp_path, start, says):
    settings = JobSettings(setup="s", kernels="axpy", device="hip", language=Language.TRITON, agent_start="none")
    (problem,) = problems_of(settings)
    file = tmp_path / "problems.jsonl"
    file.write_text(render_problems([problem.model_copy(update={"start": start})]))
    with pytest.raises(ConfigError, match=says):
        problems_of(settings.model_copy(update={"problems_file": file}))
