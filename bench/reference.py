"""Oracles: what a kernel's outputs must be, from its NumPy reference and from its baseline's float64 twin."""

import ctypes
import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from bench.build import builder
from bench.build.gpu_library import Kit
from bench.build.toolchain import Artifact
from bench.dtypes import FLOATS
from bench.errors import JudgeFault
from bench.judge.schemas import GPU_LANGUAGES
from bench.runner.memory import HOST, Array, Memory
from bench.sandbox import Sandbox
from bench.task import Argument, Role, Sizes, Task
from bench.tolerance import Oracle

# Argument name → contiguous array (inputs, indices and in-outs, as the kernel would see them) or scalar value.
Inputs = Mapping[str, Any]
OracleOf = Callable[[Inputs, Sizes], Oracle]
_C_SCALARS = {"int32": ctypes.c_int32, "int64": ctypes.c_int64}


@lru_cache(maxsize=256)
def _module(path: Path, content: bytes) -> dict[str, Any]:
    """The names that a reference file defines; keyed by content, so that an edited file is read again.

    Raises:
        JudgeFault: it does not parse or does not import; the message names it.
    """
    names: dict[str, Any] = {"__name__": f"reference_{path.parent.name}"}
    try:
        exec(compile(content, str(path), "exec"), names)  # trusted: part of the corpus
    except Exception as error:  # corpus code may raise anything, and none of it blames a submission
        raise JudgeFault(f"{path}: does not import: {error!r}; mend the reference") from error
    return names


def reference_function(task: Task, name: str) -> Callable[..., None] | None:
    """A function that the kernel's reference defines, or None."""
    function: Callable[..., None] | None = _module(task.reference, task.files["reference"]).get(name)
    return function


def _given(task: Task, inputs: Inputs, sizes: Sizes, scratch: "Scratch") -> dict[str, Any]:
    """What an oracle only reads: sizes, scalars, and inputs in float64 (indices keep their type)."""
    values: dict[str, Any] = {}
    for name, argument in task.arguments.items():
        if argument.role is Role.SIZE:
            values[name] = sizes[name]
        elif argument.role is Role.SCALAR:
            values[name] = inputs[name]
        elif not argument.is_output:
            values[name] = scratch.array(name, task.shape(name, sizes), _oracle_dtype(argument))
            scratch.memory.widen(inputs[name], values[name])
    return values


def _made(task: Task, inputs: Inputs, sizes: Sizes, scratch: "Scratch") -> dict[str, Array]:
    """What an oracle writes: float outputs filled with NaN, in-outs as they were before the call."""
    values: dict[str, Array] = {}
    for name, argument in task.outputs.items():
        values[name] = scratch.array(name, task.shape(name, sizes), _oracle_dtype(argument))
        if argument.role is Role.INOUT:
            scratch.memory.widen(inputs[name], values[name])
        else:
            scratch.memory.blank(values[name])
    return values


def _oracle_dtype(argument: Argument) -> str:
    return "float64" if argument.dtype in FLOATS else str(argument.dtype)


class Scratch:
    """Arrays of an oracle, used again from call to call: at XL, fresh pages would cost more than the oracle."""

    def __init__(self, memory: Memory = HOST) -> None:
        self.memory = memory
        self._arrays: dict[str, Array] = {}

    def array(self, name: str, shape: tuple[int, ...], dtype: str) -> Array:
        """A contiguous array of undefined content; valid until the next one of this name."""
        count = math.prod(shape)
        held = self._arrays.get(name)
        if held is None or held.size < count:
            held = self._arrays[name] = self.memory.empty(count, dtype)
        return held[:count].reshape(shape)


def numpy_oracle(task: Task, inputs: Inputs, sizes: Sizes) -> Oracle:
    """Expected outputs by the NumPy reference, in float64.

    Raises:
        JudgeFault: the reference lacks its function or raises.
    """
    expected = _numpy_call(task, task.name, inputs, sizes)
    if expected is None:
        raise JudgeFault(f"{task.reference}: defines no function '{task.name}'; name it like the kernel")
    return Oracle(expected, _numpy_call(task, "magnitude", inputs, sizes) or {})


def _numpy_call(task: Task, name: str, inputs: Inputs, sizes: Sizes) -> dict[str, Array] | None:
    function = reference_function(task, name)
    if function is None:
        return None
    scratch = Scratch()
    made = _made(task, inputs, sizes, scratch)
    values = {**_given(task, inputs, sizes, scratch), **made}
    try:
        with np.errstate(all="ignore"):
            function(*(values[argument] for argument in task.arguments))
    except Exception as error:  # as above
        raise JudgeFault(
            f"{task.reference}: {name}() failed at {dict(sizes)}: {error!r}; mend the reference"
        ) from error
    return made


class TwinLibrary:
    """A built twin, called with a value an argument: a size, a scalar, or the address of an array.

    Addresses are of the memory that the twin works on, which is a GPU's where it was built for one. A twin in HIP takes
    a stream as well; None is the default one.
    """

    def __init__(self, task: Task, built: Artifact) -> None:
        self._task, self._takes_stream = task, built.language in GPU_LANGUAGES
        self._library = ctypes.CDLL(str(built.path))
        if not hasattr(self._library, task.name):
            raise JudgeFault(f"{task.baselines[0]}: defines no function '{task.name}'; name it like the kernel")
        self.has_magnitude = hasattr(self._library, f"{task.name}_magnitude")

    def write_expected(self, values: Mapping[str, Any], stream: int | None = None) -> None:
        """Write what the kernel gives to its outputs, all floats being float64."""
        self._call(self._task.name, values, stream)

    def write_magnitude(self, values: Mapping[str, Any], stream: int | None = None) -> None:
        """Write the magnitudes to the outputs; only where `has_magnitude`."""
        self._call(f"{self._task.name}_magnitude", values, stream)

    def _call(self, symbol: str, values: Mapping[str, Any], stream: int | None) -> None:
        types = [self._type(argument) for argument in self._task.arguments.values()]
        ordered = [values[name] for name in self._task.arguments]
        if self._takes_stream:
            types.append(ctypes.c_void_p)
            ordered.append(stream)
        function = self._library[symbol]
        function.restype, function.argtypes = None, types
        function(*ordered)

    @staticmethod
    def _type(argument: Argument) -> Any:
        if argument.is_array:
            return ctypes.c_void_p
        if argument.role is Role.SIZE:
            return ctypes.c_int64
        return _C_SCALARS.get(str(argument.dtype), ctypes.c_double)


class Twin:
    """The float64 twin of a kernel's first baseline: the oracle of timed outputs, where the arrays lie.

    With a GPU's `kit` it is the GPU's; without one, that of a baseline in HIP is the emulator's.
    """

    def __init__(self, sandbox: Sandbox, task: Task, memory: Memory = HOST, kit: Kit | None = None) -> None:
        self._task, self._memory = task, memory
        self._for_expected, self._for_magnitude = Scratch(memory), Scratch(memory)
        self.built = builder.twin(sandbox, task.baselines[0], kit)
        self._library = TwinLibrary(task, self.built)

    def oracle(self, inputs: Inputs, sizes: Sizes) -> Oracle:
        """Expected outputs and, where the kernel has them, magnitudes; valid until the next call."""
        given = _given(self._task, inputs, sizes, self._for_expected)
        expected = _made(self._task, inputs, sizes, self._for_expected)
        self._library.write_expected(self._addressed({**given, **expected}))
        if self._library.has_magnitude:
            magnitude = _made(self._task, inputs, sizes, self._for_magnitude)
            self._library.write_magnitude(self._addressed({**given, **magnitude}))
        else:
            magnitude = self._by_reference(inputs, sizes)
        self._memory.settle()
        return Oracle(expected, magnitude)

    def _by_reference(self, inputs: Inputs, sizes: Sizes) -> dict[str, Array]:
        """Magnitudes by the NumPy reference; none where it has none."""
        if reference_function(self._task, "magnitude") is None:
            return {}
        arrays = self._task.arrays
        seen = {name: self._memory.seen(value) if name in arrays else value for name, value in inputs.items()}
        found = _numpy_call(self._task, "magnitude", seen, sizes) or {}
        return {name: self._memory.taken(values) for name, values in found.items()}

    def _addressed(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The same with the address of each array in its place."""
        arrays = self._task.arrays
        return {name: self._memory.address(value) if name in arrays else value for name, value in values.items()}
