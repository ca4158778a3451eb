"""The kernels in PyTorch, which agents may start from: each computes what its reference says, at any size."""

import inspect
import runpy
from itertools import chain

import numpy as np
import pytest
from numpy.typing import NDArray

from bench import seeds
from bench.dtypes import numpy_dtype
from bench.inputs import Case, draw, edge_cases, scalar_value
from bench.judge.schemas import Preset
from bench.native import helper
from bench.reference import numpy_oracle
from bench.task import Role, Task, select
from bench.tolerance import bound

torch = pytest.importorskip("torch", reason="torch is not installed; pip install torch")
KERNELS = [task for task in select("all") if task.torch_reference]
SEED = seeds.new_root()
# How much wider than the kernel's own bound PyTorch errs on a CPU, where some of its functions are approximations.
WIDER = {"gelu": 2.0}


def arguments_of(task: Task, case: Case) -> dict[str, np.ndarray | float | int]:
    """The arguments of one call in the order of the signature; outputs hold what no kernel may leave there."""
    given: dict[str, np.ndarray | float | int] = {}
    for name, argument in task.arguments.items():
        shape = task.shape(name, case.sizes)
        if argument.role is Role.SIZE:
            given[name] = case.sizes[name]
        elif argument.role is Role.SCALAR:
            given[name] = scalar_value(case, SEED, name, argument)
        elif argument.values:
            limit = int(argument.bound(case.sizes)) if argument.bound else 0
            given[name] = draw(argument, case.family(argument), case.key(SEED, name), shape, limit)
        else:
            given[name] = np.full(shape, -7, numpy_dtype(str(argument.dtype)))
    return given


def as_tensor(array: NDArray[np.generic]) -> "torch.Tensor":
    """The array itself as a tensor; NumPy's own types lack bfloat16."""
    if array.dtype == numpy_dtype("bfloat16"):
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


@pytest.mark.parametrize("task", KERNELS, ids=lambda task: task.name)
def test_it_computes_what_the_reference_says(task: Task) -> None:
    function = runpy.run_path(str(task.torch_reference))[task.name]
    families = max(len(argument.values) for argument in task.arguments.values()) or 1
    at_s = (Case("torch", f"S{variant}", task.size(Preset.S), variant) for variant in range(families))
    for case in chain(edge_cases(task, SEED, "torch"), at_s):
        given = arguments_of(task, case)
        oracle = numpy_oracle(task, {name: given[name] for name in given if task.arguments[name].values}, case.sizes)
        arrays = {name: value.copy() for name, value in given.items() if isinstance(value, np.ndarray)}
        function(*(as_tensor(arrays[name]) if name in arrays else value for name, value in given.items()))
        for name, argument in task.outputs.items():
            limits = bound(task, str(argument.dtype), case.sizes)
            magnitude = oracle.magnitude.get(name)
            found = helper.compare(
                arrays[name], oracle.expected[name], magnitude, limits.factor * WIDER.get(task.name, 1), limits.floor
            )
            assert not found.count, (name, case, found)


@pytest.mark.parametrize("task", KERNELS, ids=lambda task: task.name)
def test_it_has_the_arguments_of_the_contract(task: Task) -> None:
    function = runpy.run_path(str(task.torch_reference))[task.name]
    assert list(inspect.signature(function).parameters) == list(task.arguments)
