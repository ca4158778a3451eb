"""The leak-free contract of a kernel: what an agent may know. Ranges of sizes, never a seed or an input."""

import math
from typing import Any

from bench.abi import convention, declaration
from bench.build.builder import build_command
from bench.inputs import TIMED_FROM
from bench.judge.schemas import Language, Preset
from bench.task import POINTER_FAMILIES, Argument, Task


def contract(task: Task, language: Language, preset: Preset) -> dict[str, Any]:
    """What `/task/{kernel}` returns. Size ranges are [smallest, largest], both included."""
    manifest = task.manifest
    largest = {name: max(sizes[name] for sizes in manifest.sizes.values()) for name in task.size(preset)}
    return {
        "kernel": task.name,
        "summary": manifest.summary,
        "language": language,
        "languages": list(manifest.languages),
        "signature": declaration(task, language),
        "call": convention(task, language),
        "arguments": [described(name, argument) for name, argument in task.arguments.items()],
        "sizes": {name: [1, most] for name, most in largest.items()},
        "timed_sizes": {name: [math.ceil(TIMED_FROM * size), size] for name, size in task.size(preset).items()},
        "preset": preset,
        "tolerance": tolerance_in_words(task),
        "build": build_command(language, task.name),
        "file_name": f"{task.name}{language.suffix}",
    }


def described(name: str, argument: Argument) -> dict[str, Any]:
    """One argument as a contract shows it. Row pointers may reach their bound, other integers stay below it."""
    bound = argument.bound.text if argument.bound else None
    pointers = not POINTER_FAMILIES.isdisjoint(argument.values)
    return {
        "name": name,
        "role": argument.role,
        "dtype": argument.dtype or "int64",
        "shape": [formula.text for formula in argument.shape],
        "below": None if pointers else bound,
        "at_most": bound if pointers else None,
    }


def tolerance_in_words(task: Task) -> str:
    """When an output passes."""
    if all((argument.dtype or "").startswith("int") for argument in task.outputs.values()):
        return "every output element must be exactly right"
    factor, length = task.manifest.tolerance, task.manifest.reduction.text
    scale = task.manifest.magnitude if task.has_magnitude else "|expected|"
    return (
        f"a float passes where |got - expected| <= {factor:g} * roundoff * sqrt({length}) * magnitude:"
        f" roundoff is the unit roundoff of {_rounded_to(task)}, magnitude is {scale},"
        " and expected is computed in double precision; NaN and infinities must be in the same places;"
        " integers must be exact"
    )


def _rounded_to(task: Task) -> str:
    allowed = task.manifest.intermediates
    coarser = f" or of {allowed}, in which values may be kept on the way, whichever is larger" if allowed else ""
    return f"its type{coarser}"
