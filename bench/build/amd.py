"""HIP for AMD's GPUs: ROCm's hipcc where it is installed, else the offline kit, and what their assembly tells."""

import re
import shutil
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from bench.build.gpu import READ, Plan, Target, Vendor
from bench.build.hip_kit import find_kit
from bench.judge.schemas import KernelUse
from bench.process import Limits, run

FLAGS = ("-O3", "-std=c++17")
ASSEMBLY, CODE = ".s", ".hsaco"
_HIPCC = "/opt/rocm/bin/hipcc"
_METADATA = re.compile(r"^\s*\.amdgpu_metadata\n(.*?)^\s*\.end_amdgpu_metadata", re.MULTILINE | re.DOTALL)
_MATRIX = re.compile(r"^\s*v_(?:mfma|smfmac|wmma|swmmac)_", re.MULTILINE)
_OCCUPANCY = re.compile(r"^; Occupancy: (\d+)", re.MULTILINE)
# A function ends with its size; what clang knows of it follows as comments, up to the next function.
_FUNCTION = r"^{name}:.*?^\s*\.size\s+{name},.*?(?=^\s*\.size|\Z)"


def plan(source: str, target: Target) -> Plan:
    """How `source` is compiled to assembly and to a code object, after it was preprocessed.

    Raises:
        EnvironmentFault: there is no compiler for AMD's GPUs here.
    """
    stem = Path(source).stem
    assembly, code = stem + ASSEMBLY, stem + CODE
    if hipcc := find_hipcc():
        compile_it = (hipcc, f"--offload-arch={target}", "--cuda-device-only", "--no-gpu-bundle-output", *FLAGS)
        rocm = Path(hipcc).resolve().parents[1]
        return Plan(
            steps=(
                (*compile_it, "-E", source, "-o", stem + READ),
                (*compile_it, "-S", source, "-o", assembly),
                (*compile_it, source, "-o", code),
            ),
            compiler=version(hipcc),
            visible=() if rocm.is_relative_to("/usr") else (rocm,),
        )
    kit = find_kit()
    zig, built = str(kit.zig), f"{stem}.o"
    return Plan(
        steps=(
            (*kit.clang(target), *FLAGS, "-E", source, "-o", stem + READ),
            (*kit.clang(target), *FLAGS, "-S", source, "-o", assembly),
            (zig, "clang", "-target", "amdgcn-amd-amdhsa", f"-mcpu={target}", "-c", assembly, "-o", built),
            (zig, "ld.lld", "-shared", built, "-o", code),
        ),
        compiler=kit.version,
        visible=kit.folders,
    )


def library_command(source: str, output: str) -> list[str]:
    """The argv that makes a library for the GPU that is there, as an author would."""
    return ["hipcc", "--offload-arch=native", *FLAGS, "-shared", "-fPIC", source, "-o", output]


def find_hipcc() -> str | None:
    """ROCm's compiler on PATH or in its usual place, if it is here."""
    return shutil.which("hipcc") or shutil.which(_HIPCC)


@lru_cache(maxsize=4)
def version(hipcc: str) -> str:
    """What it says of itself in a line."""
    return run([hipcc, "--version"], limits=Limits(wall_s=30)).output.partition("\n")[0]


def kernels(source: Path, said: str) -> Iterator[KernelUse]:
    """What each kernel of a finished build takes."""
    return read_assembly(source.with_suffix(ASSEMBLY).read_text(encoding="utf-8", errors="replace"))


def read_assembly(text: str) -> Iterator[KernelUse]:
    """What each kernel takes, from its metadata (code object V3 and later) and its instructions.

    The names of the metadata: LLVM, "User Guide for AMDGPU Backend", Code Object Metadata.
    """
    found = _METADATA.search(text)
    metadata: dict[str, Any] = yaml.safe_load(found[1]) if found else {}
    for kernel in metadata.get("amdhsa.kernels", ()):
        name = str(kernel[".name"])
        body = _body(text, name)
        occupancy = _OCCUPANCY.search(body)
        yield KernelUse(
            name=name,
            vgpr=kernel[".vgpr_count"],
            agpr=kernel.get(".agpr_count", 0),
            sgpr=kernel[".sgpr_count"],
            spills=kernel[".vgpr_spill_count"] + kernel[".sgpr_spill_count"],
            lds=kernel[".group_segment_fixed_size"],
            scratch=kernel[".private_segment_fixed_size"],
            occupancy=int(occupancy[1]) if occupancy else None,
            matrix=len(_MATRIX.findall(body)),
            wave=kernel[".wavefront_size"],
        )


def _body(text: str, name: str) -> str:
    found = re.search(_FUNCTION.format(name=re.escape(name)), text, re.MULTILINE | re.DOTALL)
    return found[0] if found else ""


VENDOR = Vendor(plan, kernels, CODE)
