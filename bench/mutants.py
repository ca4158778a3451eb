"""Generated wrong submissions: what the judge of a kernel must reject before the kernel is released.

Each is C source made from the manifest and the baseline, so that every kernel is tried with the same kinds of error.
"""

import re
from collections.abc import Callable

from bench import abi
from bench.judge.schemas import Language
from bench.task import Argument, Role, Task

INNER = "kc_inner"


def mutants(task: Task) -> dict[str, str | None]:
    """Kind → C source of every mutant of a kernel; None where a kind cannot be written for this signature."""
    return {kind: make(task) for kind, make in _KINDS.items()}


def _definition(task: Task, body: str) -> str:
    head = abi.declaration(task, Language.C).removesuffix(";")
    return f"#include <stdint.h>\n#include <stdlib.h>\n#include <string.h>\n#include <math.h>\n{head} {{\n{body}\n}}\n"


def _after_baseline(task: Task, body: str, before: str = "", call: str | None = None) -> str:
    """The baseline, renamed, called from an entry point that spoils its work."""
    baseline = task.baselines[0].read_text(encoding="utf-8")
    renamed = re.sub(rf"\b{task.name}\b", INNER, baseline)
    arguments = call or ", ".join(task.arguments)
    return f"{renamed}\n{_definition(task, f'{before}{INNER}({arguments});{chr(10)}{body}')}"


def _count(argument: Argument) -> str:
    """C expression for an array's number of elements (manifest expressions are C as they stand, but for `//`)."""
    return " * ".join(f"(int64_t)({formula.text.replace('//', '/')})" for formula in argument.shape)


def _each_output(task: Task, statement: str) -> str:
    """`statement` for every output, with {name}, {count} and {type} filled in."""
    lines = []
    for name, argument in task.outputs.items():
        kind = abi.c_type(argument).removesuffix(" *")
        lines.append("  " + statement.format(name=name, count=_count(argument), type=kind))
    return "\n".join(lines)


def _empty(task: Task) -> str:
    return _definition(task, "")


def _zeros(task: Task) -> str:
    return _definition(task, _each_output(task, "memset({name}, 0, ({count}) * sizeof *{name});"))


def _constant(task: Task) -> str:
    return _definition(task, _each_output(task, "for (int64_t i = 0; i < {count}; i++) {name}[i] = 1;"))


def _input_copy(task: Task) -> str | None:
    """The first readable array of the output's type, repeated to fill it."""
    lines = []
    for name, output in task.outputs.items():
        sources = [
            (other, argument)
            for other, argument in task.arrays.items()
            if argument.dtype == output.dtype and argument.role in (Role.INPUT, Role.INDEX) and other != name
        ]
        if sources:
            other, argument = sources[0]
            lines.append(
                f"  for (int64_t i = 0; i < {_count(output)}; i++) {name}[i] = {other}[i % ({_count(argument)})];"
            )
    return _definition(task, "\n".join(lines)) if lines else None


def _off_by_one(task: Task) -> str:
    """Everything but the last element of each output."""
    save = _each_output(task, "{type} last_{name} = {name}[({count}) - 1];")
    return _after_baseline(task, _each_output(task, "{name}[({count}) - 1] = last_{name};"), before=save + "\n  ")


def _last_wrong(task: Task) -> str:
    """The last element of each output is off by a tenth and a little more."""
    return _after_baseline(
        task, _each_output(task, "{name}[({count}) - 1] = ({type})({name}[({count}) - 1] * 1.1 + 1);")
    )


def _first_percent(task: Task) -> str:
    """Right for the first hundredth of each output, zero behind it."""
    return _after_baseline(
        task,
        _each_output(task, "for (int64_t i = ({count}) / 100 + 1; i < {count}; i++) {name}[i] = 0;"),
    )


def _one_untouched(task: Task) -> str | None:
    """The last of several outputs keeps what was there."""
    if len(task.outputs) < 2:
        return None
    name = list(task.outputs)[-1]
    argument = task.outputs[name]
    kind = abi.c_type(argument).removesuffix(" *")
    nbytes = f"({_count(argument)}) * sizeof *{name}"
    save = f"  {kind} *kept = malloc({nbytes}); memcpy(kept, {name}, {nbytes});\n  "
    return _after_baseline(task, f"  memcpy({name}, kept, {nbytes}); free(kept);", before=save)


_BF16 = """
static float kc_bf16(float f) {
  unsigned u;
  __builtin_memcpy(&u, &f, 4);
  u = (u + 0x7fffu + (u >> 16 & 1)) & 0xffff0000u;
  __builtin_memcpy(&f, &u, 4);
  return f;
}
"""


def _reduced_precision(task: Task) -> str | None:
    """The baseline on inputs rounded to bfloat16."""
    floats = {n: a for n, a in task.arrays.items() if a.dtype == "float32" and a.role in (Role.INPUT, Role.INOUT)}
    if not floats:
        return None
    before, after, passed = "", "", dict.fromkeys(task.arguments, "")
    for name, argument in floats.items():
        loop = f"for (int64_t i = 0; i < {_count(argument)}; i++)"
        if argument.role is Role.INOUT:
            before += f"  {loop} {name}[i] = kc_bf16({name}[i]);\n"
        else:
            before += (
                f"  float *b_{name} = malloc(({_count(argument)}) * 4); {loop} b_{name}[i] = kc_bf16({name}[i]);\n"
            )
            after += f"  free(b_{name});\n"
            passed[name] = f"b_{name}"
    call = ", ".join(passed[name] or name for name in task.arguments)
    return _BF16 + _after_baseline(task, after, before=before + "  ", call=call)


_KINDS: dict[str, Callable[[Task], str | None]] = {
    "empty": _empty,
    "zeros": _zeros,
    "constant": _constant,
    "input_copy": _input_copy,
    "reduced_precision": _reduced_precision,
    "off_by_one": _off_by_one,
    "last_wrong": _last_wrong,
    "first_percent": _first_percent,
    "one_untouched": _one_untouched,
}
KINDS = tuple(_KINDS)
