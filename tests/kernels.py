"""Submissions, small corpora and orders for tests that grade."""

import json
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from bench import seeds
from bench.build import builder
from bench.build.gpu_library import Kit
from bench.build.toolchain import Artifact
from bench.court import Court, open_court
from bench.gates import artifacts
from bench.grade import grade
from bench.judge.schemas import Kind, Language, Preset, not_graded
from bench.records import GradeOrder, GradeReport, SubmissionOrder
from bench.sandbox import Level, Sandbox
from bench.task import Task, tasks_root

AXPY = "void axpy(const float *x, const float *y, float *out, int64_t n, float a)"
LOOP = "for (int64_t i = 0; i < n; i++) out[i] = a * x[i] + y[i];"
INCLUDES = "".join(
    f"#include <{header}.h>\n"
    for header in ("math", "pthread", "stdint", "stdio", "stdlib", "string", "sys/wait", "unistd")
)


def axpy_c(body: str, before: str = "") -> str:
    """C source of an axpy with the given body."""
    return f"#define _GNU_SOURCE\n{INCLUDES}{before}\n{AXPY} {{ {body} }}\n"


def on_load(body: str) -> str:
    """C source of a constructor: code that runs when a library is loaded."""
    return f"__attribute__((constructor)) static void loaded(void) {{ {body} }}\n"


def axpy_py(body: str, before: str = "") -> str:
    """Python source of an axpy whose body is one line."""
    return f"import numpy\n{before}\ndef axpy(x, y, out, n, a):\n    {body}\n"


HONEST_C = axpy_c(LOOP)
HONEST_CPP = (
    "#include <algorithm>\n#include <cstdint>\n"
    f'extern "C" {AXPY} {{ std::transform(x, x + n, y, out, [a](float u, float v) {{ return a * u + v; }}); }}\n'
)
HONEST_FORTRAN = """\
subroutine axpy(x, y, out, n, a) bind(C, name="axpy")
  use, intrinsic :: iso_c_binding, only: c_float, c_int64_t
  implicit none
  integer(c_int64_t), value :: n
  real(c_float), intent(in) :: x(n), y(n)
  real(c_float), intent(out) :: out(n)
  real(c_float), value :: a
  out = a * x + y
end subroutine axpy
"""
HONEST_HIP = (
    f"#include <hip/hip_runtime.h>\n#include <stdint.h>\n__global__ {AXPY.replace('axpy', 'each')}\n"
    "{ int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; if (i < n) out[i] = a * x[i] + y[i]; }\n"
    f'extern "C" {AXPY.removesuffix(")")}, hipStream_t stream)\n'
    "{ each<<<(n + 255) / 256, 256, 0, stream>>>(x, y, out, n, a); }\n"
)
HONEST_PYTHON = axpy_py("numpy.add(a * x, y, out=out)")

NEEDS_GFORTRAN = pytest.mark.skipif(
    shutil.which("gfortran") is None, reason="gfortran is not installed; on Debian: apt-get install gfortran"
)
# Those that are graded where there is no GPU.
LANGUAGES = [
    pytest.param(language, marks=NEEDS_GFORTRAN if language is Language.FORTRAN else ())
    for language in Language
    if not not_graded(language)
]


@cache
def court(level: Level | None = None) -> Court:
    """The court of this test process: at the strongest level that this machine reaches, or at another one."""
    reached = open_court("limits")
    if level is None:
        return reached
    return replace(reached, sandbox=replace(reached.sandbox, level=level))


def reached() -> str:
    """The level that grades get here unless they are told otherwise."""
    return str(court().sandbox.level)


def only_built(
    sandbox: Sandbox,
    folder: Path,
    task: Task,
    order: SubmissionOrder,
    flags: tuple[str, ...] = (),
    kit: Kit | None = None,
) -> tuple[Artifact, dict[str, Any]]:
    """What `artifacts.make` does, without its gates."""
    if order.library is not None:
        artifacts.take(Path(order.library), copy := artifacts.planned(folder, task, order).path)
        return Artifact(copy, order.language), {}
    assert order.source is not None
    return builder.build_submission(sandbox, folder, task, order.language, order.source, flags, kit), {}


def order(source: str | None, language: Language = Language.C, **changes: Any) -> GradeOrder:
    """An order for axpy at S as a preview, unless `changes` say otherwise."""
    fields: dict[str, Any] = {
        "grade_id": "test",
        "kind": Kind.CALIBRATION,
        "kernel": "axpy",
        "language": language,
        "source": source,
        "preset": Preset.S,
        "protocol": "mw2x5",
        "seed": seeds.new_root().hex(),
        "disclose": True,
    }
    return GradeOrder(**fields | changes)


def graded(
    source: str | None, language: Language = Language.C, level: Level | None = None, **changes: Any
) -> GradeReport:
    """A grade made in this process."""
    return grade(order(source, language, **changes), court(level))


# A kernel in few lines: out[i] = 2 x[i], with everything that validation wants of it.
TWICE: dict[str, Any] = {
    "name": "twice",
    "suite": "small",
    "summary": "Twice a vector.",
    "arguments": {
        "x": {"role": "input", "dtype": "float32", "shape": ["n"], "values": ["uniform", "wide"]},
        "out": {"role": "output", "dtype": "float32", "shape": ["n"]},
        "n": {"role": "size"},
    },
    "sizes": {"S": {"n": 2000}, "M": {"n": 4000}, "L": {"n": 8000}, "XL": {"n": 16000}},
    "edge": {"n": [1, 7]},
    "traffic": "8 * n",
    "flops": "n",
    "languages": ["c", "cpp", "python"],
    "tags": ["tiny"],
    "mutants": {"one_untouched": "there is only one output"},
}
TWICE_C = "#include <stdint.h>\nvoid twice(const float *x, float *out, int64_t n) {{ {} }}\n"
TWICE_FILES = {
    "reference.py": "def twice(x, out, n):\n    out[...] = 2 * x\n",
    "baseline.c": (
        "#include <stdint.h>\n#ifndef real\n#define real float\n#endif\n"
        "void twice(const real *x, real *out, int64_t n) { for (int64_t i = 0; i < n; i++) out[i] = 2 * x[i]; }\n"
    ),
    "controls/honest_sum.c": TWICE_C.format("for (int64_t i = 0; i < n; i++) out[i] = x[i] + x[i];"),
    "controls/honest_back.c": TWICE_C.format("while (n-- > 0) out[n] = 2 * x[n];"),
    "controls/wrong_tail.c": TWICE_C.format("for (int64_t i = 0; i < n / 4 * 4; i++) out[i] = 2 * x[i];"),
}

# The same for GPUs alone.
TWICE_GPU: dict[str, Any] = TWICE | {"languages": ["hip"], "gpu": {}, "baselines": []}
TWICE_HIP = (
    "#include <hip/hip_runtime.h>\n#include <stdint.h>\n#ifndef real\n#define real float\n#endif\n"
    "__global__ void each(const real *x, real *out, int64_t n)\n"
    "{{ const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; {} }}\n"
    'extern "C" void twice(const real *x, real *out, int64_t n, hipStream_t stream)\n'
    "{{ each<<<(n + 255) / 256, 256, 0, stream>>>(x, out, n); }}\n"
)
TWICE_GPU_FILES = {
    "reference.py": TWICE_FILES["reference.py"],
    "baseline.hip": TWICE_HIP.format("if (i < n) out[i] = 2 * x[i];"),
    "controls/honest_sum.hip": TWICE_HIP.format("if (i < n) out[i] = x[i] + x[i];"),
    "controls/honest_back.hip": TWICE_HIP.format("if (i < n) out[n - 1 - i] = 2 * x[n - 1 - i];"),
    "controls/wrong_tail.hip": TWICE_HIP.format("if (i < n / 4 * 4) out[i] = 2 * x[i];"),
}


def write_kernel(root: Path, manifest: dict[str, Any] = TWICE, files: dict[str, str] = TWICE_FILES) -> Path:
    """Put a kernel under `root/<suite>/<name>` and return its folder; JSON is YAML."""
    folder = root / str(manifest["suite"]) / str(manifest["name"])
    for name, text in {"task.yaml": json.dumps(manifest, indent=1), **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def copy_kernel(root: Path, name: str) -> Path:
    """A copy of a shipped kernel under `root`, to be spoilt."""
    (folder,) = tasks_root().glob(f"*/{name}")
    return Path(shutil.copytree(folder, root / folder.parent.name / name))
