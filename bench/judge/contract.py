"""The leak-free contract of a kernel: what an agent may know. Ranges of sizes, never a seed or an input."""

import math
from collections.abc import Sequence
from typing import Any

from bench.abi import convention, declaration
from bench.build.builder import build_command
from bench.inputs import TIMED_FROM
from bench.judge.schemas import GPU_LANGUAGES, Device, Language, Preset, graded_on
from bench.task import POINTER_FAMILIES, Argument, Task

# How a device is called, and how many lanes its waves have.
_GPUS = {
    Device.CUDA: ("a GPU of NVIDIA", 32),
    Device.HIP: ("a GPU of AMD", 64),
    Device.EMULATED: ("a GPU that a CPU plays, where nothing is timed", 64),
}


def contract(
    task: Task, language: Language, preset: Preset, judge: Device = Device.CPU, device_name: str = ""
) -> dict[str, Any]:
    """What `/task/{kernel}` returns of a judge of that device. Size ranges are [smallest, largest], both included.

    In a language of GPUs they are those of the kernel's GPU track, or, where a CPU plays the GPU, of what that is
    given; `timed_sizes` is empty there. `device_name` is which GPU it is.
    """
    device = next((one for one in graded_on(judge) if language in one.languages), None)
    task = task.gpu_track if language in GPU_LANGUAGES and device is not Device.EMULATED else task
    manifest, is_timed = task.manifest, device is not Device.EMULATED
    return {
        "kernel": task.name,
        "summary": manifest.summary,
        "language": language,
        "languages": list(manifest.languages),
        "signature": declaration(task, language),
        "call": convention(task, language),
        "arguments": [described(name, argument) for name, argument in task.arguments.items()],
        "sizes": {name: [1, most] for name, most in _largest(task, list(Preset) if is_timed else [Preset.S]).items()},
        "timed_sizes": timed_ranges(task, preset) if is_timed else {},
        "preset": preset,
        "device": device,
        "graded_on": graded_in_words(device, device_name),
        "waves": list(manifest.gpu.waves) if manifest.gpu and language in GPU_LANGUAGES else [],
        "tolerance": tolerance_in_words(task),
        "build": build_command(language, task.name, device),
        "file_name": f"{task.name}{language.suffix}",
    }


def _largest(task: Task, presets: Sequence[Preset]) -> dict[str, int]:
    """The largest of each size that a grade at these presets draws, edges too."""
    edge, drawn = task.manifest.edge, [task.size(preset) for preset in presets]
    return {name: max(*(sizes[name] for sizes in drawn), *edge.get(name, ()), 1) for name in drawn[0]}


def timed_ranges(task: Task, preset: Preset) -> dict[str, list[int]]:
    """Size → the smallest and the largest that is timed at a preset."""
    return {name: [math.ceil(TIMED_FROM * size), size] for name, size in task.size(preset).items()}


def graded_in_words(device: Device | None, name: str) -> str:
    """What a kernel for GPUs is graded on, and what the waves of that are; an empty text for others."""
    if device not in _GPUS:
        return ""
    called, lanes = _GPUS[device]
    return f"{called}{f' ({name})' if name else ''}; its waves have {lanes} lanes"


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
