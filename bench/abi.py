"""One call signature a task, rendered for every language: declarations, starting stubs and the runner's call shims."""

from bench.judge.schemas import Language
from bench.task import Argument, Role, Task

_C_TYPES = {"float32": "float", "float64": "double", "int32": "int32_t", "int64": "int64_t"}


def c_type(argument: Argument) -> str:
    """C type of one parameter; inputs and indices are pointers to const."""
    if argument.role is Role.SIZE:
        return "int64_t"
    assert argument.dtype is not None
    base = _C_TYPES[argument.dtype]
    if not argument.is_array:
        return base
    return f"{base} *" if argument.is_output else f"const {base} *"


def _parameters(task: Task) -> str:
    return ", ".join(f"{kind}{'' if kind.endswith('*') else ' '}{name}" for name, kind in _typed(task))


def _typed(task: Task) -> list[tuple[str, str]]:
    return [(name, c_type(argument)) for name, argument in task.arguments.items()]


def declaration(task: Task, language: Language) -> str:
    """The entry point's signature as an author writes it in `language`."""
    match language:
        case Language.C:
            return f"void {task.name}({_parameters(task)});"
        case Language.CPP:
            return f'extern "C" void {task.name}({_parameters(task)});'
        case Language.PYTHON:
            return f"def {task.name}({', '.join(task.arguments)}):"


def c_shim(task: Task) -> str:
    """C source of `kc_invoke`, which calls an entry point from buffer bases and the control page's slots."""
    types = ", ".join(kind for _, kind in _typed(task))
    lines, passed = [], []
    for index, (name, kind) in enumerate(_typed(task)):
        if task.arguments[name].is_array:
            passed.append(f"({kind})(base[{index}] + slot[{index}])")
        elif kind == "int64_t":
            passed.append(f"slot[{index}]")
        else:
            lines.append(f"  {kind} a{index};\n  memcpy(&a{index}, &slot[{index}], sizeof a{index});")
            passed.append(f"a{index}")
    body = "\n".join([*lines, f"  ((void (*)({types}))kernel)({', '.join(passed)});"])
    return (
        "#include <stdint.h>\n#include <string.h>\n"
        f"void kc_invoke(void (*kernel)(void), char **base, const int64_t *slot) {{\n{body}\n}}\n"
    )


def python_shim(task: Task) -> str:
    """Python source of `arguments(base, slot)`: the arrays and scalars of one call, built from its slots.

    Shapes are the manifest's own expressions, which the allow-list has admitted.
    """
    index = {name: number for number, name in enumerate(task.arguments)}
    lines = ["import struct", "from math import ceil, log2", "import numpy", "", "def arguments(base, slot):"]
    sizes = [name for name, argument in task.arguments.items() if argument.role is Role.SIZE]
    lines += [f"    {name} = slot({index[name]})" for name in sizes]
    for name, argument in task.arguments.items():
        if argument.is_array:
            shape = ", ".join(f"int({formula.text})" for formula in argument.shape)
            lines.append(
                f"    {name} = numpy.ndarray(({shape},), '{argument.dtype}', base[{index[name]}], slot({index[name]}))"
            )
            if not argument.is_output:
                lines.append(f"    {name}.flags.writeable = False")
        elif argument.role is Role.SCALAR:
            lines.append(f"    {name} = {_scalar_from_slot(argument, index[name])}")
    lines.append(f"    return {', '.join(task.arguments)},")
    return "\n".join(lines) + "\n"


def _scalar_from_slot(argument: Argument, index: int) -> str:
    if argument.dtype is not None and argument.dtype.startswith("float"):
        code = "f" if argument.dtype == "float32" else "d"
        return f"struct.unpack_from('<{code}', struct.pack('<q', slot({index})))[0]"
    return f"slot({index})"
