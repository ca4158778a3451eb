"""Calls Triton files in Triton's interpreter, which needs no GPU, and compares what they write with the reference.

A program of its own, because `TRITON_INTERPRET=1` holds for a whole process. argv: kernel=file, as often as wanted. For
each it prints a line of JSON: the kernel, the file's name, how many calls were right, and what was wrong with the first
that was not.
"""

import contextlib
import importlib.util
import json
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import triton.language as tl
from numpy.typing import NDArray
from triton.runtime.interpreter import InterpreterBuilder

from bench.build.triton_launches import Tensor
from bench.inputs import Case, edge_cases, fuzzed_cases, scalar_value
from bench.judge.schemas import Preset
from bench.measure.session import Session
from bench.measure.stopwatch import Stopwatch
from bench.runner.buffers import Arena
from bench.task import Role, Task, select
from bench.tolerance import first_mismatch

SEED = bytes(range(32))
MOST_EDGES = 4
# Sizes beyond a block, a tile or a table of the solutions, where preset S is within it.
BEYOND = {
    "argmax_rows": {"rows": 3, "cols": 2501},
    "cross_entropy": {"rows": 3, "classes": 4501},
    "floyd_warshall": {"n": 67},
    "gauss_seidel2d": {"rows": 35, "cols": 150},
    "histogram": {"n": 9001, "bins": 5000},
    "jacobi2d": {"rows": 19, "cols": 600},
    "layernorm": {"rows": 3, "cols": 4501},
    "logsumexp_rows": {"rows": 3, "cols": 2501},
    "nbody": {"n": 151},
    "rmsnorm": {"rows": 5, "cols": 2501},
    "segment_max": {"segments": 3, "n": 5001},
    "sgemm": {"m": 1100, "n": 200, "k": 50},
    "softmax_rows": {"rows": 3, "cols": 2501},
    "spmv_csr": {"rows": 3, "cols": 50, "nnz": 3001},
    "topk": {"rows": 3, "cols": 4501, "k": 5},
}
POISON = 7


class Held(Tensor):
    """A tensor in an array of NumPy: what the interpreter copies to the host and back is there already."""

    device = "cpu"

    def __init__(self, dtype: str, array: NDArray[Any]) -> None:
        super().__init__(dtype, list(array.shape))
        self._array = array

    def data_ptr(self) -> int:  # type: ignore[override]
        return int(self._array.ctypes.data)

    def untyped_storage(self) -> Self:
        return self

    def storage_offset(self) -> int:
        return 0

    def cpu(self) -> Self:
        return self

    def new_empty(self, *_: Any, **__: Any) -> Self:
        return self

    def set_(self, *_: Any) -> None:
        pass

    def copy_(self, *_: Any) -> None:
        pass


def entry_point(path: Path, name: str) -> Callable[..., None]:
    spec = importlib.util.spec_from_file_location(f"{name}_{path.stem}", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function: Callable[..., None] = getattr(module, name)
    return function


def cases(task: Task) -> Iterator[Case]:
    """All sizes 1, some edge cases, a fuzzed one, one beyond a block: few, as the interpreter takes its time."""
    yield Case("triton", "ones", dict.fromkeys(task.size(Preset.S), 1))
    edges = list(edge_cases(task, SEED, "triton"))
    yield from edges[:: math.ceil(len(edges) / MOST_EDGES)]
    yield next(fuzzed_cases(task, SEED, "triton"))
    if task.name in BEYOND:
        yield Case("triton", "beyond", BEYOND[task.name])


def fault(task: Task, entry: Callable[..., None], case: Case) -> str:
    """What is wrong with one call, or an empty text."""
    with contextlib.closing(Arena(task, [case.sizes])) as arena:
        prepared = Session(task, SEED, arena, Stopwatch()).prepare(case)
        before = {name: view.copy() for name, view in prepared.views.items() if name not in task.outputs}
        for name, argument in task.outputs.items():
            if argument.role is Role.OUTPUT:
                arena.memory.poison(prepared.views[name], POISON)
        entry(*(given(task, case, name, prepared.views) for name in task.arguments))
        if name := arena.broken_canary(prepared.views, prepared.offsets, prepared.canary):
            return f"it wrote outside '{name}' at {case.sizes}"
        if changed := [name for name, values in before.items() if (values != prepared.views[name]).any()]:
            return f"it changed {changed} at {case.sizes}"
        mismatch = first_mismatch(
            task, case.sizes, {name: prepared.views[name] for name in task.outputs}, prepared.oracle
        )
        return f"{mismatch} at {case.sizes}, variant {case.variant}" if mismatch else ""


def given(task: Task, case: Case, name: str, views: dict[str, NDArray[Any]]) -> Held | float | int:
    """What an entry point gets for one argument."""
    argument = task.arguments[name]
    if argument.role is Role.SIZE:
        return case.sizes[name]
    if argument.role is Role.SCALAR:
        return scalar_value(case, SEED, name, argument)
    return Held(str(argument.dtype), views[name])


def widen_bfloat16_in_products() -> None:
    """Triton 3.9 keeps a bfloat16 in the interpreter as its bits, and its `dot` multiplies these as integers."""
    dot = InterpreterBuilder.create_dot

    def widened(self: Any, a: Any, b: Any, *others: Any) -> Any:
        a, b = (self.create_fp_ext(one, tl.float32) if one.dtype.scalar is tl.bfloat16 else one for one in (a, b))
        return dot(self, a, b, *others)

    InterpreterBuilder.create_dot = widened


def main() -> None:
    widen_bfloat16_in_products()
    for word in sys.argv[1:]:
        name, _, file = word.partition("=")
        (task,), path = select(name), Path(file)
        right, wrong = 0, ""
        entry = entry_point(path, name)
        for case in cases(task):
            if wrong := fault(task, entry, case):
                break
            right += 1
        print(json.dumps({"kernel": name, "file": path.name, "right": right, "wrong": wrong}))


if __name__ == "__main__":
    main()
