"""One call signature a task, rendered for every language: declarations, starting stubs and the runner's call shims."""

import re
from collections.abc import Mapping

from bench.judge.schemas import Language
from bench.task import MAX_ARGUMENTS, Argument, Role, Task

# C has no 16-bit floats everywhere: their bits stand for them.
_C_TYPES = {
    "float16": "uint16_t",
    "bfloat16": "uint16_t",
    "float32": "float",
    "float64": "double",
    "int32": "int32_t",
    "int64": "int64_t",
}
_HIP_TYPES = _C_TYPES | {"float16": "__half", "bfloat16": "__hip_bfloat16"}
_CUDA_TYPES = _C_TYPES | {"float16": "__half", "bfloat16": "__nv_bfloat16"}
_FORTRAN_TYPES = {
    "float32": ("real", "c_float"),
    "float64": ("real", "c_double"),
    "int32": ("integer", "c_int32_t"),
    "int64": ("integer", "c_int64_t"),
}
_FORTRAN_INTENTS = {Role.OUTPUT: "out", Role.INOUT: "inout"}
# A formula that is the same integer in Fortran, once `//` is `/`: no fraction, remainder, ceil or log2.
_FORTRAN_FORMULA = re.compile(r"(?:(?!ceil|log2)[A-Za-z]\w*|\d+(?!\w)|[ +*(),-]|//)+")


def c_type(argument: Argument, names: Mapping[str, str] = _C_TYPES) -> str:
    """C type of one parameter, elements under their `names`; inputs and indices are pointers to const."""
    if argument.role is Role.SIZE:
        return "int64_t"
    assert argument.dtype is not None
    base = names[argument.dtype]
    if not argument.is_array:
        return base
    return f"{base} *" if argument.is_output else f"const {base} *"


def _parameters(task: Task, names: Mapping[str, str] = _C_TYPES) -> str:
    return ", ".join(f"{kind}{'' if kind.endswith('*') else ' '}{name}" for name, kind in _typed(task, names))


def _typed(task: Task, names: Mapping[str, str] = _C_TYPES) -> list[tuple[str, str]]:
    return [(name, c_type(argument, names)) for name, argument in task.arguments.items()]


def declaration(task: Task, language: Language) -> str:
    """The entry point's signature as an author writes it in `language`."""
    match language:
        case Language.C:
            return f"void {task.name}({_parameters(task)});"
        case Language.CPP:
            return f'extern "C" void {task.name}({_parameters(task)});'
        case Language.HIP:
            return f'extern "C" void {task.name}({_parameters(task, _HIP_TYPES)}, hipStream_t stream);'
        case Language.CUDA:
            return f'extern "C" void {task.name}({_parameters(task, _CUDA_TYPES)}, cudaStream_t stream);'
        case Language.PYTHON | Language.TRITON:
            return f"def {task.name}({', '.join(task.arguments)}):"
        case Language.FORTRAN:
            return _subroutine(task)


def convention(task: Task, language: Language) -> str:
    """What the signature does not say of a call on a GPU; an empty text for the languages of CPUs."""
    ends = "and return; the judge waits until the work is done"
    match language:
        case Language.HIP | Language.CUDA:
            said = f"Pointers are device pointers. Launch on `stream`, {ends}."
        case Language.TRITON:
            said = (
                "Arrays are contiguous PyTorch tensors on the GPU, sizes and scalars are Python numbers. Write the "
                f"outputs in place, launch on the current stream, {ends}."
            )
        case _:
            return ""
    if language is Language.HIP and task.manifest.gpu:
        widths = " and ".join(map(str, task.manifest.gpu.waves))
        said += f" It has to be right with waves of {widths} lanes."
    return said


def _subroutine(task: Task) -> str:
    """A whole Fortran subroutine without a body; sizes are declared first, because the shapes name them."""
    arguments = sorted(task.arguments.items(), key=lambda item: item[1].role is not Role.SIZE)
    kinds = sorted({_FORTRAN_TYPES[argument.dtype or "int64"][1] for _, argument in arguments})
    lines = [
        f'subroutine {task.name}({", ".join(task.arguments)}) bind(C, name="{task.name}")',
        "  ! Arrays are those of C: the same memory, dimensions in reverse order. Index values count from 0.",
        f"  use, intrinsic :: iso_c_binding, only: {', '.join(kinds)}",
        "  implicit none",
        *(f"  {_fortran_declaration(name, argument)}" for name, argument in arguments),
        f"end subroutine {task.name}",
    ]
    return "\n".join(lines)


def _fortran_declaration(name: str, argument: Argument) -> str:
    base, kind = _FORTRAN_TYPES[argument.dtype or "int64"]
    if not argument.is_array:
        return f"{base}({kind}), value :: {name}"
    intent = _FORTRAN_INTENTS.get(argument.role, "in")
    return f"{base}({kind}), intent({intent}) :: {name}({_fortran_shape(argument)})"


def _fortran_shape(argument: Argument) -> str:
    """The array of C in Fortran's order: the first dimension is the one that varies fastest, C's last one.

    An array whose shape Fortran's integers cannot say is flat, without an upper bound.
    """
    formulas = [formula.text for formula in argument.shape]
    if not all(_FORTRAN_FORMULA.fullmatch(formula) for formula in formulas):
        return "*"
    return ", ".join(formula.replace("//", "/") for formula in reversed(formulas))


def c_shim(task: Task, workspace: bool = False, stream: bool = False) -> str:
    """C source of `kc_invoke`, which calls an entry point from buffer bases and the control page's slots.

    A submission that asked for a workspace gets it behind its other arguments: `void *workspace, int64_t
    workspace_bytes`. The stream of a GPU comes last; it is null where there is none.
    """
    kinds = [kind for _, kind in _typed(task)]
    lines, passed = [], []
    for index, (name, kind) in enumerate(_typed(task)):
        if task.arguments[name].is_array:
            passed.append(f"({kind})(base[{index}] + slot[{index}])")
        elif kind == "int64_t":
            passed.append(f"slot[{index}]")
        else:
            lines.append(f"  {kind} a{index};\n  memcpy(&a{index}, &slot[{index}], sizeof a{index});")
            passed.append(f"a{index}")
    if workspace:
        last = len(kinds)
        kinds += ["void *", "int64_t"]
        passed += [f"base[{last}] + slot[{last}]", f"slot[{last + 1}]"]
    if stream:
        kinds.append("void *")
        passed.append(f"base[{MAX_ARGUMENTS}]")
    types = ", ".join(kinds)
    body = "\n".join([*lines, f"  ((void (*)({types}))kernel)({', '.join(passed)});"])
    return (
        "#include <stdint.h>\n#include <string.h>\n"
        f"void kc_invoke(void (*kernel)(void), char **base, const int64_t *slot) {{\n{body}\n}}\n"
    )


def python_shim(task: Task, workspace: bool = False) -> str:
    """Python source of `arguments(base, slot)`: the arrays and scalars of one call, built from its slots.

    Shapes are the manifest's own expressions, which the allow-list has admitted. A workspace is one more array, of
    bytes, behind the other arguments.
    """
    index = {name: number for number, name in enumerate(task.arguments)}
    lines = ["import numpy", "def arguments(base, slot):", *_scalars(task, index)]
    for name, argument in task.arrays.items():
        place = f"base[{index[name]}], slot({index[name]})"
        lines.append(f"    {name} = numpy.ndarray({_shape(argument)}, '{argument.dtype}', {place})")
        if not argument.is_output:
            lines.append(f"    {name}.flags.writeable = False")
    return _shim(task, lines, "numpy.ndarray((slot({1}),), 'uint8', base[{0}], slot({0}))" if workspace else "")


def tensor_shim(task: Task, workspace: bool = False) -> str:
    """The same of `arguments(tensor, slot)` on a GPU; `tensor(index, offset, shape, dtype)` gives what lies there."""
    index = {name: number for number, name in enumerate(task.arguments)}
    lines = ["def arguments(tensor, slot):", *_scalars(task, index)]
    for name, argument in task.arrays.items():
        place = f"{index[name]}, slot({index[name]})"
        lines.append(f"    {name} = tensor({place}, {_shape(argument)}, '{argument.dtype}')")
    return _shim(task, lines, "tensor({0}, slot({0}), (slot({1}),), 'uint8')" if workspace else "")


def _shim(task: Task, lines: list[str], workspace: str) -> str:
    """A shim whose function makes every argument by name in `lines`, and a workspace by a template over its indices."""
    passed, last = list(task.arguments), len(task.arguments)
    if workspace:
        lines = [*lines, f"    workspace = {workspace.format(last, last + 1)}"]
        passed.append("workspace")
    return (
        "\n".join(["import struct", "from math import ceil, log2", *lines, f"    return {', '.join(passed)},"]) + "\n"
    )


def _shape(argument: Argument) -> str:
    return f"({', '.join(f'int({formula.text})' for formula in argument.shape)},)"


def _scalars(task: Task, index: Mapping[str, int]) -> list[str]:
    """Lines that take sizes, which the shapes name, and then scalars from their slots."""
    sizes = [name for name, argument in task.arguments.items() if argument.role is Role.SIZE]
    scalars = {name: argument for name, argument in task.arguments.items() if argument.role is Role.SCALAR}
    lines = [f"    {name} = slot({index[name]})" for name in sizes]
    return lines + [f"    {name} = {_scalar_from_slot(argument, index[name])}" for name, argument in scalars.items()]


def _scalar_from_slot(argument: Argument, index: int) -> str:
    if argument.dtype is not None and argument.dtype.startswith("float"):
        code = "f" if argument.dtype == "float32" else "d"
        return f"struct.unpack_from('<{code}', struct.pack('<q', slot({index})))[0]"
    return f"slot({index})"
