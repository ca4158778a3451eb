"""One signature for every language: stored declarations, and shims that deliver every kind of argument."""

from pathlib import Path
from typing import Any

import pytest
from kernels import LANGUAGES, graded, write_kernel

from bench import abi
from bench.judge.schemas import Language, Outcome
from bench.task import select

DECLARATIONS = {
    "axpy": (
        "void axpy(const float *x, const float *y, float *out, int64_t n, float a);",
        "def axpy(x, y, out, n, a):",
    ),
    "softmax_rows": (
        "void softmax_rows(const float *x, float *out, int64_t rows, int64_t cols);",
        "def softmax_rows(x, out, rows, cols):",
    ),
    "spmv_csr": (
        "void spmv_csr(const int64_t *row_ptr, const int32_t *col_idx, const float *values, const float *x, float *y, "
        "int64_t rows, int64_t cols, int64_t nnz);",
        "def spmv_csr(row_ptr, col_idx, values, x, y, rows, cols, nnz):",
    ),
    "floyd_warshall": (
        "void floyd_warshall(float *dist, int64_t n);",
        "def floyd_warshall(dist, n):",
    ),
}


@pytest.mark.parametrize("name", DECLARATIONS)
def test_a_declaration(name: str) -> None:
    (task,) = select(name)
    in_c, in_python = DECLARATIONS[name]
    assert abi.declaration(task, Language.C) == in_c
    assert abi.declaration(task, Language.CPP) == f'extern "C" {in_c}'
    assert abi.declaration(task, Language.PYTHON) == in_python


def test_a_hip_declaration_names_hips_own_types() -> None:
    (task,) = select("gemm_bf16")
    parameters = "const __hip_bfloat16 *A, const __hip_bfloat16 *B, float *C, int64_t m, int64_t n, int64_t k"
    assert abi.declaration(task, Language.HIP) == f'extern "C" void gemm_bf16({parameters}, hipStream_t stream);'


def test_a_c_shim() -> None:
    assert abi.c_shim(select("axpy")[0]) == (
        "#include <stdint.h>\n#include <string.h>\n"
        "void kc_invoke(void (*kernel)(void), char **base, const int64_t *slot) {\n"
        "  float a4;\n"
        "  memcpy(&a4, &slot[4], sizeof a4);\n"
        "  ((void (*)(const float *, const float *, float *, int64_t, float))kernel)"
        "((const float *)(base[0] + slot[0]), (const float *)(base[1] + slot[1]), (float *)(base[2] + slot[2]), "
        "slot[3], a4);\n"
        "}\n"
    )


# Every role and type, more of each than the registers of a call hold, in no particular order.
SCALARS = {
    **{f"f{i}": ("float32", "few") for i in range(3)},
    **{f"d{i}": ("float64", "uniform") for i in range(9)},
    **{f"i{i}": ("int32", "below") for i in range(2)},
    **{f"l{i}": ("int64", "skewed") for i in range(5)},
}
ARRAYS = {"x": "float32", "w": "float64", "k": "int32", "m": "int64"}


def mixed_arguments() -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    for name, (dtype, family) in SCALARS.items():
        bound = {"bound": "1000"} if dtype.startswith("int") else {}
        arguments[name] = {"role": "scalar", "dtype": dtype, "values": [family], **bound}
        if name == "d2":
            arguments["rows"] = {"role": "size"}
            arguments["out"] = {"role": "output", "dtype": "float64", "shape": ["rows", "cols"]}
    for name, dtype in ARRAYS.items():
        values = {"values": ["below"], "bound": "rows * 7"} if dtype.startswith("int") else {"values": ["few"]}
        role = "index" if name == "m" else "input"
        arguments[name] = {"role": role, "dtype": dtype, "shape": ["rows", "cols"], **values}
    last = {"role": "inout", "dtype": "int64", "shape": ["rows"], "values": ["below"], "bound": "rows"}
    return {**arguments, "cols": {"role": "size"}, "last": last}


WEIGHTS = {name: weight for weight, name in enumerate([*SCALARS, *ARRAYS], start=2)}
MIXED = {
    "name": "mixed",
    "suite": "small",
    "summary": "A weighted sum of everything.",
    "arguments": mixed_arguments(),
    "sizes": {p: {"rows": 20 * s, "cols": 30 * s} for s, p in enumerate(("S", "M", "L", "XL"), start=1)},
    "edge": {"rows": [1, 2]},
    "traffic": "rows * cols * 8",
    "flops": "rows * cols * 40",
    "languages": ["c", "cpp", "fortran", "python"],
}
TERMS = " + ".join(f"{weight} * {name}" for name, weight in WEIGHTS.items() if name in SCALARS)
NUMPY_BODY = (
    f"    out[...] = {TERMS} + {' + '.join(f'{WEIGHTS[name]} * {name}.astype(float)' for name in ARRAYS)}\n"
    "    last += rows * 1000 + cols\n"
)


def c_source(head: str) -> str:
    element = " + ".join(f"{WEIGHTS[name]} * (double){name}[i]" for name in ARRAYS)
    terms = " + ".join(f"{WEIGHTS[name]} * (double){name}" for name in SCALARS)
    return (
        f"#include <stdint.h>\n{head} {{\n"
        f"  for (int64_t i = 0; i < rows * cols; i++) out[i] = {terms} + {element};\n"
        "  for (int64_t r = 0; r < rows; r++) last[r] += rows * 1000 + cols;\n}\n"
    )


def fortran_source(stub: str) -> str:
    """The sum by the array's own two indices, which shows the order of dimensions."""
    head, _, end = stub.rpartition("\n")
    terms = [f"{WEIGHTS[name]} * real({name}, c_double)" for name in SCALARS]
    terms += [f"{WEIGHTS[name]} * real({name}(c, r), c_double)" for name in ARRAYS]
    loops = f"  do r = 1, rows\n    do c = 1, cols\n      out(c, r) = {' + '.join(terms)}\n    end do\n  end do\n"
    return f"{head}\n  integer(c_int64_t) :: r, c\n{loops}  last = last + rows * 1000 + cols\n{end}\n"


@pytest.fixture
def mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[Language, str]:
    """A corpus with the kernel `mixed`; a solution in each language."""
    write_kernel(tmp_path, MIXED, {"reference.py": "", "baseline.c": ""})
    monkeypatch.setenv("KCOURT_TASKS_DIR", str(tmp_path))
    (task,) = select("mixed", tmp_path)
    heads = {language: abi.declaration(task, language).removesuffix(";") for language in Language}
    twin = heads[Language.C].replace("float ", "real ")
    write_kernel(
        tmp_path,
        MIXED,
        {
            "reference.py": f"{heads[Language.PYTHON]}\n{NUMPY_BODY}",
            "baseline.c": f"#ifndef real\n#define real float\n#endif\n{c_source(twin)}",
        },
    )
    in_python = f"{heads[Language.PYTHON]}\n{NUMPY_BODY}"
    return {
        Language.C: c_source(heads[Language.C]),
        Language.CPP: c_source(heads[Language.CPP]),
        Language.FORTRAN: fortran_source(heads[Language.FORTRAN]),
        Language.PYTHON: in_python,
        Language.HIP: f"#include <hip/hip_runtime.h>\n{c_source(heads[Language.HIP])}",
    }


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_shim_delivers_every_kind_of_argument(mixed: dict[Language, str], language: Language) -> None:
    report = graded(mixed[language], language, kernel="mixed")
    assert report.outcome is Outcome.SOLVED, (report.property, report.detail, report.log, report.provenance)


def test_a_shim_delivers_each_argument_to_its_own_place(mixed: dict[Language, str]) -> None:
    swapped = mixed[Language.C].replace("(double)d7", "(double)d8", 1)
    assert graded(swapped, Language.C, kernel="mixed").outcome is Outcome.WRONG
