"""HIP without a GPU: a grade on the device `emulated` says what is right, and gives no number to anybody."""

import dataclasses
import shutil
from pathlib import Path
from typing import NoReturn

import pytest
from conftest import for_no_gpu
from kernels import court, graded

from bench import grade as grading
from bench.build import amd
from bench.build.gpu import Target
from bench.errors import EnvironmentFault
from bench.judge.schemas import Device, Kind, Language, Outcome
from bench.worker import must_solve, self_grade

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="g++ is not installed")

HEAD = "#include <hip/hip_runtime.h>\n#include <stdint.h>\n"
PARAMETERS = "const float *x, const float *y, float *out, int64_t n, float a"
INDEX = "const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;"
RIGHT = "if (i < n) out[i] = a * x[i] + y[i];"
LAUNCH = "each<<<dim3((n + 255) / 256), 256, 0, stream>>>(x, y, out, n, a);"


def axpy_hip(body: str = RIGHT, launch: str = LAUNCH, before: str = "") -> str:
    """HIP source of an axpy: what a thread does with its index `i`, and how threads are launched."""
    kernel = f"__global__ void each({PARAMETERS}) {{ {INDEX} {body} }}"
    return f'{HEAD}{before}\n{kernel}\nextern "C" void axpy({PARAMETERS}, hipStream_t stream) {{ {launch} }}\n'


@pytest.mark.usefixtures("emulated_alone")
@pytest.mark.parametrize("protocol", ["mw2x5", "mw4x5"])
def test_what_is_right_is_solved_without_a_number(protocol):
    report = graded(axpy_hip(), Language.HIP, protocol=protocol)
    assert (report.outcome, report.device) == (Outcome.SOLVED, Device.EMULATED), report
    assert (report.score, report.interval, report.faster, report.cells) == (None, None, None, ())
    assert report.denominator is None and report.suspect is None
    answer = report.answer("axpy", 0, disclose=False)
    assert (answer.score, answer.detail["device"]) == (None, "emulated")


def test_a_submit_is_verified_again_and_compiled_for_a_gpu_where_that_can_be():
    report = graded(axpy_hip(), Language.HIP, protocol="mw4x5", kind=Kind.SUBMIT)
    assert report.provenance["reverify"]["cases"] > 10
    made = report.provenance["build"]["code_object"]
    assert "not_applied" in made or (made["target"] == Target.GFX942 and made["kernels"][0]["name"].startswith("each"))


@pytest.mark.usefixtures("emulated_alone")
def test_a_workspace_comes_before_the_stream():
    source = axpy_hip("if (i < n) out[i] = a * x[i] + y[i];").replace(
        "float a, hipStream_t", "float a, void *workspace, int64_t workspace_bytes, hipStream_t"
    )
    checked = source.replace(
        "{ each<<<", "{ if (workspace_bytes != 4096 || stream) return; *(char *)workspace = 1; each<<<"
    )
    report = graded(checked, Language.HIP, workspace_bytes=4096)
    assert report.outcome is Outcome.SOLVED, report


REVERSED = """\
    __shared__ float kept[256];
    const int64_t end = n - (int64_t)blockIdx.x * 256 < 256 ? n - (int64_t)blockIdx.x * 256 : 256;
    if (i < n) kept[threadIdx.x] = a * x[i] + y[i];
    BARRIER
    if (threadIdx.x < end) out[(int64_t)blockIdx.x * 256 + end - 1 - threadIdx.x] = kept[end - 1 - threadIdx.x];
"""


@pytest.mark.usefixtures("emulated_alone")
@pytest.mark.parametrize(
    ("source", "outcome", "property"),
    [
        (axpy_hip(RIGHT.replace("i < n", "i < n - 1")), Outcome.WRONG, "values"),
        (axpy_hip(launch=LAUNCH.replace("(n + 255)", "n")), Outcome.WRONG, "values"),
        (axpy_hip(launch=LAUNCH.replace("256, 0", "2048, 0")), Outcome.WRONG, "values"),
        (axpy_hip(REVERSED.replace("BARRIER", "")), Outcome.WRONG, "values"),
        (axpy_hip(REVERSED.replace("BARRIER", "if (threadIdx.x % 2) __syncthreads();")), Outcome.CRASHED, None),
        (axpy_hip("out[i + 100000000] = 1;"), Outcome.CRASHED, None),
        (axpy_hip("((float *)x)[i < n ? i : 0] = 0;"), Outcome.TAMPERED, None),
        (axpy_hip('while (n) asm volatile("");'), Outcome.TIMEOUT, None),
        (axpy_hip("mistake"), Outcome.BUILD_FAILED, "build"),
        (axpy_hip(before='#include "/etc/hostname"'), Outcome.POLICY, "include"),
        (
            axpy_hip(before="int begun; __attribute__((constructor)) static void early(void) { begun = 1; }"),
            Outcome.POLICY,
            "init_code",
        ),
        (axpy_hip(before="#pragma GCC optimize(3)"), Outcome.POLICY, "flags"),
        (axpy_hip(before="#include <unistd.h>", launch="sleep(0);" + LAUNCH), Outcome.POLICY, "imports"),
        (axpy_hip(before='#line 7 "hip/hip_runtime.h"'), Outcome.POLICY, "text"),
    ],
    ids=[
        *("last element", "grid rounds down", "block too large", "no barrier", "divergent barrier", "out of bounds"),
        *("writes to an input", "endless", "an error", "another file", "constructor", "flags", "sleep", "line"),
    ],
)
def test_what_is_wrong_or_forbidden_is_not_solved(source, outcome, property):
    report = graded(source, Language.HIP)
    assert (report.outcome, report.score) == (outcome, None), report
    assert property in (None, report.property)


@pytest.mark.usefixtures("emulated_alone")
def test_a_barrier_makes_the_reversed_block_right():
    report = graded(axpy_hip(REVERSED.replace("BARRIER", "__syncthreads();")), Language.HIP)
    assert report.outcome is Outcome.SOLVED, report


def test_an_error_names_the_authors_file_and_line():
    report = graded(axpy_hip("mistake"), Language.HIP)
    assert "axpy.hip:4:" in report.log and "/tmp" not in report.log


def test_what_the_gpus_compiler_refuses_is_no_solution(monkeypatch):
    """Kernels that only the emulator takes; where there is no compiler for GPUs, that is noted."""
    only_here = axpy_hip(before="#ifndef KC_EMULATED\n#error only for the emulator\n#endif")
    report = graded(only_here, Language.HIP)
    try:
        amd.plan("axpy.hip", Target.GFX942)
        assert report.outcome is Outcome.BUILD_FAILED and "only for the emulator" in report.log
    except EnvironmentFault:
        assert report.outcome is Outcome.SOLVED
    monkeypatch.setattr(amd, "VENDOR", dataclasses.replace(amd.VENDOR, plan=for_no_gpu))
    without = graded(only_here, Language.HIP)
    assert without.outcome is Outcome.SOLVED
    assert without.provenance["build"]["code_object"] == {"not_applied": "no compiler here"}


@pytest.mark.usefixtures("emulated_alone")
def test_no_timed_input_is_ever_made(monkeypatch):
    def never(*_: object) -> NoReturn:
        raise AssertionError("timed")

    monkeypatch.setattr(grading, "timed_sizes", never)
    assert graded(axpy_hip(), Language.HIP, preset="XL", protocol="mw4x5").outcome is Outcome.SOLVED


def test_a_judge_whose_setups_are_written_in_hip_is_fit_without_a_gpu(monkeypatch):
    tried = []

    def noted(task, reference, judged_by):
        tried.append(reference.suffix)
        must_solve(task, reference, judged_by)

    monkeypatch.setattr("bench.worker.must_solve", noted)
    self_grade(court(), [Language.HIP])
    assert tried == [".c", ".hip"]


def test_the_example_of_the_page_is_right():
    page = (Path(__file__).parents[1] / "docs" / "gpu.md").read_text()
    example = page.partition("```cpp\n")[2].partition("```")[0]
    assert graded(example, Language.HIP).outcome is Outcome.SOLVED
