"""HIP for NVIDIA's GPUs: nvcc reads it through headers of ours, and its assembler tells what kernels take."""

import importlib.util
import re
import shutil
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from bench.build.gpu import READ, Plan, Target, Vendor
from bench.errors import EnvironmentFault
from bench.judge.schemas import KernelUse
from bench.process import Limits, run

FLAGS = ("-O3", "-std=c++17")
CODE = ".cubin"
# Headers under HIP's names that a build finds beside its source.
HEADERS = Path(__file__).parents[1] / "native" / "hip_cuda"
_NVCC = ("/usr/local/cuda/bin/nvcc", "/opt/cuda/bin/nvcc")
_RUNTIMES = ("lib/libcudart.so.1?", "lib64/libcudart.so.1?", "targets/*/lib/libcudart.so.1?")
_WHEELS = "nvidia.cu13"
_WAVE = 32
_REGISTER_BYTES = 4
_KERNEL = re.compile(
    r"Compiling entry function '(?P<name>[^']+)'"
    r".*?(?P<scratch>\d+) bytes stack frame, (?P<spilled>\d+) bytes spill stores"
    r".*?Used (?P<vgpr>\d+) registers(?P<rest>[^\n]*)",
    re.DOTALL,
)
_MATRIX = re.compile(r"^\s*(?:@%?\w+\s+)?(?:wgmma\.mma_async|mma|wmma\.mma)\.", re.MULTILINE)
_SHARED = re.compile(r"(\d+) bytes smem")


def plan(source: str, target: Target) -> Plan:
    """How `source` is compiled to a code object; what the last step says is for `read_report`.

    Raises:
        EnvironmentFault: there is no nvcc here.
    """
    nvcc = find_nvcc()
    cuda = toolkit(nvcc)
    stem = Path(source).stem
    compile_it = (nvcc, "-x", "cu", f"-arch={target}", *FLAGS, "-I.")
    return Plan(
        steps=(
            (*compile_it, "-E", source, "-o", stem + READ),
            (*compile_it, "-Xptxas=-v", "-cubin", source, "-o", stem + CODE),
        ),
        compiler=version(nvcc),
        visible=() if cuda.is_relative_to("/usr") else (cuda,),
    )


def library_command(source: str, output: str) -> list[str]:
    """The argv that makes a library for the GPU that is there, as an author would."""
    as_cuda = [] if source.endswith(".cu") else ["-x", "cu"]
    return ["nvcc", *as_cuda, "-arch=native", *FLAGS, "-shared", "-Xcompiler", "-fPIC", source, "-o", output]


def find_nvcc() -> str:
    """nvcc on PATH, in its usual places, or from NVIDIA's Python packages; raises EnvironmentFault without one."""
    for place in ("nvcc", *_NVCC):
        if found := shutil.which(place):
            return found
    spec = importlib.util.find_spec("nvidia") and importlib.util.find_spec(_WHEELS)
    for folder in spec.submodule_search_locations or () if spec else ():
        if found := shutil.which("nvcc", path=f"{folder}/bin"):
            return found
    raise EnvironmentFault("nvcc was not found; install CUDA 13, or pip install 'kernelcourt[offline]'")


@lru_cache(maxsize=4)
def toolkit(nvcc: str) -> Path:
    """The folder of the CUDA that it belongs to, be it a link or a script that calls another."""
    said = run([nvcc, "--dryrun", "-x", "cu", "/dev/null"], limits=Limits(wall_s=30)).output
    here = re.search(r"^#\$ _HERE_=(.+)$", said, re.MULTILINE)
    return Path(here[1]).resolve().parent if here else Path(nvcc).resolve().parents[1]


@lru_cache(maxsize=4)
def version(nvcc: str) -> str:
    """What it says of itself in a line."""
    return run([nvcc, "--version"], limits=Limits(wall_s=30)).output.strip().splitlines()[-2]


def find_runtime(cuda: Path) -> Path:
    """The runtime library of a CUDA below `cuda`; raises EnvironmentFault without one."""
    found = [path for place in _RUNTIMES for path in sorted(cuda.glob(place))]
    if not found:
        raise EnvironmentFault(f"libcudart.so was not found below {cuda}; install CUDA's runtime beside its compiler")
    return found[-1]


def read_report(said: str) -> Iterator[KernelUse]:
    """What each kernel takes, from the words of `ptxas -v`."""
    for found in _KERNEL.finditer(said):
        shared = _SHARED.search(found["rest"])
        yield KernelUse(
            name=found["name"],
            vgpr=int(found["vgpr"]),
            spills=int(found["spilled"]) // _REGISTER_BYTES,
            lds=int(shared[1]) if shared else 0,
            scratch=int(found["scratch"]),
            wave=_WAVE,
        )


def matrix_instructions(ptx: str) -> int:
    """How many instructions of PTX are for the matrix units."""
    return len(_MATRIX.findall(ptx))


VENDOR = Vendor(plan, lambda _, said: read_report(said), CODE, HEADERS)
