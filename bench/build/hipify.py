"""HIP's names for CUDA's and back, by one table: the header through which nvcc reads HIP."""

import re
from functools import cache

from bench.build import nvidia

_DEFINED = re.compile(r"^#define (hip\w+) (cuda\w+)$", re.MULTILINE)
_HEADERS = {
    "hip/hip_runtime.h": "cuda_runtime.h",
    "hip/hip_fp16.h": "cuda_fp16.h",
    "hip/hip_bf16.h": "cuda_bf16.h",
    "hip/hip_cooperative_groups.h": "cooperative_groups.h",
}
_TYPES = {"__hip_bfloat16": "__nv_bfloat16", "__hip_bfloat162": "__nv_bfloat162"}
_INCLUDE = r'(?P<begin>#\s*include\s*[<"])(?P<header>[\w/]+\.h)(?=[>"])'
_HIP = re.compile(_INCLUDE + r"|\b(?P<name>hip[A-Z]\w*|__hip_bfloat162?)\b")
_CUDA = re.compile(_INCLUDE + r"|\b(?P<name>cuda[A-Z]\w*|__nv_bfloat162?)\b")
# What no table of names turns into the other language: votes and shuffles name their lanes in CUDA alone.
_HIP_ALONE = re.compile(
    r"\b(?:hip[A-Z]\w*|hip/\w+\.h|__(?:shfl|shfl_up|shfl_down|shfl_xor|ballot|any|all|lane_id)|__builtin_amdgcn_\w+)\b"
)
_CUDA_ALONE = re.compile(r"\b(?:cu(?:da|blas|rand|fft|sparse)?[A-Z]\w*|cuda_\w+\.h|__\w+_sync|__nv_\w+)\b")


@cache
def _names() -> dict[str, str]:
    """HIP's name → CUDA's, of functions, types and constants."""
    header = nvidia.HEADERS / "hip" / "hip_runtime.h"
    return dict(_DEFINED.findall(header.read_text(encoding="utf-8"))) | _TYPES


def hip_to_cuda(source: str) -> tuple[str, list[str]]:
    """The same in CUDA, and the names in it, each once, that are HIP's or AMD's and were left as they are."""
    return _renamed(source, _HIP, _names() | _HEADERS, _HIP_ALONE)


def cuda_to_hip(source: str) -> tuple[str, list[str]]:
    """The same in HIP, and the names in it that are CUDA's and were left; what includes no header gets HIP's own."""
    back = {cuda: hip for hip, cuda in (_names() | _HEADERS).items()}
    text, left = _renamed(source, _CUDA, back, _CUDA_ALONE)
    own = "#include <hip/hip_runtime.h>\n"
    return (text if own.strip() in text else own + text), left


def _renamed(
    source: str, pattern: re.Pattern[str], table: dict[str, str], alone: re.Pattern[str]
) -> tuple[str, list[str]]:
    def other(found: re.Match[str]) -> str:
        if found["name"]:
            return table.get(found["name"], found[0])
        return found["begin"] + table.get(found["header"], found["header"])

    text = pattern.sub(other, source)
    return text, sorted(set(alone.findall(text)))
