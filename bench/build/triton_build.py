"""Triton ahead of time: what a submission launches is compiled for a GPU that need not be here."""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from bench.build import amd, nvidia
from bench.build.gpu import CodeObject, Target, package_folder
from bench.judge.schemas import Closed, KernelUse, Outcome, Preset
from bench.sandbox import BUILD_LIMITS, GIB, Sandbox
from bench.task import Argument, Role, Task
from bench.verdict import Rejected

# LLVM maps more than it uses.
LIMITS = replace(BUILD_LIMITS, memory_bytes=16 * GIB)
MOST_KERNELS = 100
_LAUNCHES = Path(__file__).with_name("triton_launches.py")
# Of the two assemblers in the package, the one that Triton calls from sm_90 on.
_PTXAS = "ptxas-blackwell"
_SCALAR = 0.5
_VARIABLES = {"TRITON_DEFAULT_FP_FUSION": "1", "TRITON_CACHE_DIR": "cache", "PYTHONDONTWRITEBYTECODE": "1"}


class _Launched(Closed):
    """A line of `launches.json`: `shared` and `bytes` of the block's memory and of the code."""

    name: str
    warps: int
    stages: int
    shared: int
    bytes: int


def compile_triton(sandbox: Sandbox, folder: Path, source: Path, task: Task, target: Target) -> CodeObject:
    """Call the entry point of a Triton file in `folder` on tensors without values, and compile what it launches.

    Shapes and sizes are those of preset XL.

    Raises:
        Rejected: it does not compile, does more than launch kernels, or launches none (`build_failed`), with the log.
        EnvironmentFault: Triton is not installed here.
    """
    visible = [path for path in (Path(sys.prefix), Path(sys.base_prefix)) if path != Path("/usr")]
    ptxas = package_folder("triton") / "backends" / "nvidia" / "bin" / _PTXAS
    arguments = json.dumps(list(_arguments(task)))
    argv = [sys.executable, "-I", str(_LAUNCHES), source.name, task.name, target.value, arguments]
    command = ["env", *(f"{name}={value}" for name, value in _VARIABLES.items()), *argv]
    done = sandbox.run(command, LIMITS, folder, [*visible, _LAUNCHES])
    launched = _read(folder / "launches.json") if done.ok else []
    if not launched:
        message = "it launches no kernel" if done.ok else f"it does not compile for {target}: the log's end says why"
        raise Rejected(Outcome.BUILD_FAILED, "build", {"message": message}, done.output)
    uses = [use for number, one in enumerate(launched) for use in _uses(sandbox, folder, number, one, target, ptxas)]
    return CodeObject(
        target=target,
        compiler=f"triton {version('triton')}",
        commands=(tuple(argv),),
        kernels=tuple(uses),
        bytes=sum(one.bytes for one in launched),
    )


def _arguments(task: Task) -> Iterator[dict[str, Any]]:
    """The arguments of a call at XL, as `triton_launches.py` reads them."""
    sizes = task.size(Preset.XL)
    for name, argument in task.arguments.items():
        if argument.is_array:
            yield {"dtype": argument.dtype, "shape": task.shape(name, sizes)}
        elif argument.role is Role.SIZE:
            yield {"value": sizes[name]}
        else:
            yield {"value": _scalar(argument)}


def _scalar(argument: Argument) -> float | int:
    return _SCALAR if str(argument.dtype).startswith("float") else 1


def _read(path: Path) -> list[_Launched]:
    """The list that a submission's own process has written, if it is one."""
    try:
        return TypeAdapter(list[_Launched]).validate_json(path.read_bytes())[:MOST_KERNELS]
    except (OSError, ValidationError):
        return []


def _uses(
    sandbox: Sandbox, folder: Path, number: int, launched: _Launched, target: Target, ptxas: Path
) -> Iterator[KernelUse]:
    """What a launched kernel takes; the block's memory is for Triton to say, which asks for it at the launch."""
    name = f"{launched.name} (num_warps={launched.warps}, num_stages={launched.stages})"
    if target.is_amd:
        text = (folder / f"{number}.amdgcn").read_text(encoding="utf-8", errors="replace")
        found = list(amd.read_assembly(text))
    else:
        ptx = folder / f"{number}.ptx"
        argv = [str(ptxas), "-v", f"-arch={target}a", ptx.name, "-o", f"{number}.cubin"]
        found = list(nvidia.read_report(sandbox.run(argv, BUILD_LIMITS, folder, [ptxas]).output))
        matrix = nvidia.matrix_instructions(ptx.read_text(encoding="utf-8", errors="replace"))
        found = [use.model_copy(update={"matrix": matrix}) for use in found]
    for use in found:
        yield use.model_copy(update={"name": name, "lds": max(use.lds, launched.shared)})
