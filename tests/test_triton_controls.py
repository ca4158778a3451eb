"""Solutions in Triton: what Triton's interpreter makes of them is right, and they compile for GPUs that are not here.

The interpreter runs the programs of a launch one after the other, and each as if it were one thread of vectors: a
missing barrier, a race between programs and the GPU's own rounding do not show in it.
"""

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY, run_program

from bench.task import select

pytestmark = pytest.mark.skipif(not importlib.util.find_spec("triton"), reason="triton is not installed")

# One architecture for each file, in turn: to compile all for both would take twice as long.
ARCHITECTURES = ("gfx942", "sm_90")
CONTROLS = [(task.name, path) for task in select("all") for path in sorted(task.folder.rglob("*_triton.py"))]


def found_by(program: str, controls: list[tuple[str, Path]], *arguments: str, **variables: str) -> list[dict[str, Any]]:
    """What a program of this folder says of each control."""
    named = [f"{kernel}={path}" for kernel, path in controls]
    env = {"PYTHONPATH": str(REPOSITORY), "TRITON_DEFAULT_FP_FUSION": "1"} | variables
    done = run_program(sys.executable, REPOSITORY / "tests" / program, *arguments, *named, env=env)
    assert done.code == 0, done.err
    said = [json.loads(line) for line in done.out.splitlines()]
    assert [(one["kernel"], one["file"]) for one in said] == [(kernel, path.name) for kernel, path in controls]
    return said


def test_every_kernel_of_the_core_has_an_honest_solution_in_triton() -> None:
    assert {task.name for task in select("core")} <= {kernel for kernel, path in CONTROLS if "honest" in path.name}


def test_the_interpreter_finds_every_call_right() -> None:
    said = found_by("triton_interpreted.py", CONTROLS, TRITON_INTERPRET="1")
    assert [one for one in said if one["wrong"] or not one["right"]] == []


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_they_compile_at_the_largest_sizes_and_at_ones(tmp_path: Path, architecture: str) -> None:
    chosen = CONTROLS[ARCHITECTURES.index(architecture) :: len(ARCHITECTURES)]
    said = found_by("triton_compiled.py", chosen, architecture, TRITON_CACHE_DIR=str(tmp_path))
    assert all(one["compiled"] for one in said)


WRONG = """\
import triton
import triton.language as tl

@triton.jit
def each(x, y, out, n, a, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, a * tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n - 1)

def axpy(x, y, out, n, a):
    each[(triton.cdiv(n, 256),)](x, y, out, n, a, 256)
"""


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (WRONG, "Mismatch(output='out'"),
        (WRONG.replace("mask=at < n - 1", "mask=at <= n"), "it wrote outside 'out'"),
        (WRONG.replace("mask=at < n - 1", "mask=at < n").replace("store(out", "store(x"), "it changed ['x']"),
    ],
    ids=["last element", "out of bounds", "writes to an input"],
)
def test_the_interpreter_tells_wrong_from_right(tmp_path: Path, source: str, says: str) -> None:
    (tmp_path / "axpy_triton.py").write_text(source)
    (said,) = found_by("triton_interpreted.py", [("axpy", tmp_path / "axpy_triton.py")], TRITON_INTERPRET="1")
    assert says in said["wrong"]
