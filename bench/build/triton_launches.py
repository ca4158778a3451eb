"""Compiles what a Triton module launches, with no GPU; started by path with `python -I` in the sandbox.

argv: module.py, its entry point, an architecture, and the arguments of a call as JSON: a list of {"dtype", "shape"}
and {"value"}. Leaves beside the module `<number>.amdgcn` or `<number>.ptx` for each kernel that the call launches, and
their list, `launches.json`.
"""

import importlib.util
import json
import math
import sys
from pathlib import Path
from typing import Any

import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction


class Tensor:
    """What stands for a tensor while kernels are compiled: it has a type and a shape, and no values."""

    device = "cuda"

    def __init__(self, dtype: str, shape: list[int]) -> None:
        self.dtype = getattr(tl, dtype)
        self.shape = tuple(shape)
        self.ndim = len(shape)

    def stride(self, dim: int | None = None) -> Any:
        strides = tuple(math.prod(self.shape[at + 1 :]) for at in range(self.ndim))
        return strides if dim is None else strides[dim]

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        return self.ndim

    def numel(self) -> int:
        return math.prod(self.shape)

    def is_contiguous(self) -> bool:
        return True

    @staticmethod
    def data_ptr() -> int:
        return 0  # aligned, as the judge's buffers are

    def ptr_range(self) -> int:
        return int(self.numel() * self.dtype.primitive_bitwidth // 8)


class Absent:
    """The driver of a GPU that is not here."""

    def __init__(self, target: GPUTarget) -> None:
        self._target = target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_current_target(self) -> GPUTarget:
        return self._target


def target_of(architecture: str) -> GPUTarget:
    if architecture.startswith("gfx"):
        return GPUTarget("hip", architecture, 64)
    return GPUTarget("cuda", int(architecture.removeprefix("sm_")), 32)


def record_launches(compiled: dict[str, Any]) -> None:
    """From now on a launch compiles, and notes the kernel under its hash; one that is tuned, every configuration."""
    run = JITFunction.run

    def compile_only(self: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        kernel = run(self, *args, grid=grid, warmup=True, **options)
        compiled.setdefault(kernel.hash, kernel)
        return kernel

    def compile_each(self: Any, *args: Any, **options: Any) -> None:
        for config in self.configs:
            self.fn.run(*args, **options, **config.all_kwargs())

    JITFunction.run = compile_only
    Autotuner.run = compile_each


def main() -> None:
    path, entry, architecture, arguments = sys.argv[1:]
    compiled: dict[str, Any] = {}
    driver.set_active(Absent(target_of(architecture)))
    record_launches(compiled)
    spec = importlib.util.spec_from_file_location(entry, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    given = [one["value"] if "value" in one else Tensor(**one) for one in json.loads(arguments)]
    getattr(module, entry)(*given)
    launches = []
    for number, kernel in enumerate(compiled.values()):
        kind = "amdgcn" if "amdgcn" in kernel.asm else "ptx"
        Path(f"{number}.{kind}").write_text(kernel.asm[kind], encoding="utf-8")
        binary = kernel.asm["hsaco" if kind == "amdgcn" else "cubin"]
        launches.append(
            {
                "name": kernel.metadata.name,
                "warps": kernel.metadata.num_warps,
                "stages": kernel.metadata.num_stages,
                "shared": kernel.metadata.shared,
                "bytes": len(binary),
            }
        )
    Path("launches.json").write_text(json.dumps(launches), encoding="utf-8")


if __name__ == "__main__":
    main()
