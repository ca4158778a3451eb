"""What is known of a GPU build before and after it: architectures, the command lines, and what a kernel takes."""

import importlib.util
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from bench.errors import EnvironmentFault
from bench.judge.schemas import Closed, KernelUse


class Target(StrEnum):
    """A GPU's architecture by its compiler's name: MI200, MI300, MI350; H100 and H200."""

    GFX90A = "gfx90a"
    GFX942 = "gfx942"
    GFX950 = "gfx950"
    SM_90 = "sm_90"

    @property
    def is_amd(self) -> bool:
        return self.value.startswith("gfx")


class CodeObject(Closed):
    """What came of a build: the compiler, its commands, and what every kernel takes, in the order of the source."""

    target: Target
    compiler: str
    commands: tuple[tuple[str, ...], ...]
    kernels: tuple[KernelUse, ...]
    bytes: int


def package_folder(name: str) -> Path:
    """Where a Python package of compilers lies.

    Raises:
        EnvironmentFault: it is not installed.
    """
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise EnvironmentFault(
            f"the package '{name}' is not installed; pip install 'kernelcourt[offline]', or install ROCm or CUDA"
        )
    return Path(next(iter(spec.submodule_search_locations)))


# What a build leaves in place of the source's suffix: the preprocessed text, which names every file that it read.
READ = ".gpu.i"


@dataclass(frozen=True)
class Plan:
    """How a source becomes a code object: argvs to run beside it, what they call, and the folders that those need."""

    steps: tuple[tuple[str, ...], ...]
    compiler: str
    visible: tuple[Path, ...]


@dataclass(frozen=True)
class Vendor:
    """How one vendor's compiler is used.

    `plan(source, target)` raises EnvironmentFault where there is none; `kernels(source, said)` reads what a finished
    build left beside the file or said; `code` is the suffix of a code object, `headers` what lies beside a source.
    """

    plan: Callable[[str, Target], Plan]
    kernels: Callable[[Path, str], Iterable[KernelUse]]
    code: str
    headers: Path | None = None
