"""Start material: what lies in an agent's folder at first. With a language it is a direction, such as hip2triton."""

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path

from bench.build.hipify import hip_to_cuda
from bench.errors import UsageError
from bench.judge.schemas import Language
from bench.task import Task


class Start(StrEnum):
    """What an agent starts from, by the words of `AGENT_START`."""

    NONE = "none"
    NUMPY = "numpy"
    C = "c"
    HIP = "hip"
    CUDA = "cuda"
    TORCH = "torch"
    TRITON = "triton"


# What treatments and `kcourt task stage` call it.
STARTS = {
    "none": Start.NONE,
    "reference": Start.NUMPY,
    "baseline": Start.C,
    "hip": Start.HIP,
    "cuda": Start.CUDA,
    "torch": Start.TORCH,
    "triton": Start.TRITON,
}


def lacks_start(task: Task, start: Start) -> str:
    """Why a kernel has no such start material; an empty text when it has."""
    needed = {
        Start.CUDA: ("a baseline in HIP that has CUDA's names alone beside HIP's", _can_be_cuda(task)),
        Start.TORCH: ("torch_reference.py", task.torch_reference is not None),
        Start.TRITON: ("baseline_triton.py", task.triton_baseline is not None),
    }
    what, there = needed.get(start, ("", True))
    return "" if there else f"{task.name} lacks {what}, which start material '{start}' is"


def start_material(task: Task, start: Start) -> dict[str, bytes]:
    """File name → content of what an agent starts from; controls are never among them.

    PyTorch stands alone; any other baseline has the NumPy reference beside it.

    Raises:
        UsageError: the kernel has no such start material.
    """
    if lacking := lacks_start(task, start):
        raise UsageError(f"{lacking}; take another, or leave the kernel out")
    match start:
        case Start.NONE:
            return {}
        case Start.TORCH:
            assert task.torch_reference
            return {f"{task.name}_torch.py": task.torch_reference.read_bytes()}
        case Start.CUDA:
            return _read([task.reference]) | {path.with_suffix(".cu").name: _in_cuda(path) for path in _in_hip(task)}
        case Start.TRITON:
            assert task.triton_baseline
            return _read([task.reference, task.triton_baseline])
        case Start.NUMPY:
            return _read([task.reference])
        case Start.C:
            return _read([task.reference, *(path for path in task.baselines if Language.of(path) is Language.C)])
        case Start.HIP:
            return _read([task.reference, *_in_hip(task)])


def _in_hip(task: Task) -> list[Path]:
    return [path for path in task.gpu_baselines if Language.of(path) is Language.HIP]


def _can_be_cuda(task: Task) -> bool:
    sources = [path.read_text(encoding="utf-8") for path in _in_hip(task)]
    return bool(sources) and not any(left for _, left in map(hip_to_cuda, sources))


def _in_cuda(path: Path) -> bytes:
    """The baseline in HIP by CUDA's names.

    Raises:
        UsageError: it has names that CUDA has not.
    """
    text, left = hip_to_cuda(path.read_text(encoding="utf-8"))
    if left:
        raise UsageError(f"{path}: cannot be had in CUDA, which has no {', '.join(left)}; take another start material")
    return text.encode()


def _read(paths: Iterable[Path]) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in paths}
