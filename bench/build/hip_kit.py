"""An offline HIP compiler: clang and lld of `ziglang`, headers and device library of `triton`, laid out as ROCm is."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

from bench.build.gpu import package_folder
from bench.cache import cached, content_key, default_cache
from bench.errors import EnvironmentFault, JudgeFault
from bench.process import Limits, run

# The headers of triton's wheel say HIP 7.1.
_HIP_VERSION = "HIP_VERSION_MAJOR=7\nHIP_VERSION_MINOR=1\nHIP_VERSION_PATCH=0\n"
# Triton's wheel has no headers of 16-bit floats: those of ours, most of which the emulator has, too.
_NATIVE = Path(__file__).parents[1] / "native"
_SMALL_FLOATS = (
    *(_NATIVE / "hip_cpu" / "hip" / name for name in ("hip_fp16.h", "hip_bf16.h", "hip_bfloat16.h", "kc_small.h")),
    _NATIVE / "hip_amd" / "hip" / "kc_device.h",
)
# Of clang's own headers, the one that the driver includes before every HIP source; ziglang's clang comes without.
_WRAPPER = "include/__clang_hip_runtime_wrapper.h"
_RESOURCES = Path("/usr/lib")
# Constants that the device library reads, each a file of its own that clang links by its name: file → constant.
_ISA = {"90a": 9010, "942": 9402, "950": 9500}
_ABI = (400, 500, 600)
_SWITCHES = {
    "correctly_rounded_sqrt": "correctly_rounded_sqrt32",
    "daz_opt": "daz_opt",
    "finite_only": "finite_only_opt",
    "unsafe_math": "unsafe_math_opt",
    "wavefrontsize64": "wavefrontsize64",
}
_TRIPLE = 'target triple = "amdgcn-amd-amdhsa"\n'
_CONSTANT = "@__oclc_{} = linkonce_odr hidden local_unnamed_addr addrspace(4) constant {} {}, align {}\n"


@dataclass(frozen=True)
class Kit:
    """Where the pieces lie: the program `zig`, a folder laid out as ROCm is, and clang's own headers."""

    zig: Path
    rocm: Path
    resources: Path

    @property
    def version(self) -> str:
        return f"clang of ziglang {version('ziglang')}, HIP headers and device library of triton {version('triton')}"

    @property
    def folders(self) -> tuple[Path, ...]:
        """What a build has to see beside the system's own files."""
        return (self.zig.parent, self.rocm, self.resources)

    def clang(self, target: str) -> list[str]:
        """The argv that compiles HIP for an AMD device up to its flags and files."""
        device_library = self.rocm / "amdgcn" / "bitcode"
        return [
            *(str(self.zig), "clang", "-x", "hip", f"--offload-arch={target}", "--cuda-device-only"),
            *("--no-gpu-bundle-output", f"--rocm-path={self.rocm}", "-isystem", str(self.rocm / "include")),
            *(f"--rocm-device-lib-path={device_library}", "-resource-dir", str(self.resources)),
            "-D__AMDGCN_WAVEFRONT_SIZE=64",
        ]


@lru_cache(maxsize=1)
def find_kit() -> Kit:
    """The kit of this machine, put together when it is first asked for.

    Raises:
        EnvironmentFault: a piece is missing; the message says which, and how to get it.
    """
    zig = package_folder("ziglang") / "zig"
    amd = package_folder("triton") / "backends" / "amd"
    found = [path.parents[1] for path in _RESOURCES.glob(f"llvm-*/lib/clang/*/{_WRAPPER}")]
    if not found:
        raise EnvironmentFault(
            f"clang's headers for HIP were not found below {_RESOURCES}/llvm-*; "
            "on Debian: apt-get install libclang-common-19-dev"
        )
    newest = max(found, key=lambda path: int(path.name.partition(".")[0]))
    return Kit(zig, _laid_out(zig, amd), newest)


def _laid_out(zig: Path, amd: Path) -> Path:
    """A folder with the parts of ROCm that clang looks for, kept by the versions of the packages that they are from."""
    ours = [header.read_bytes() for header in _SMALL_FLOATS]
    key = content_key(version("ziglang"), version("triton"), repr(list(_constants())), _HIP_VERSION, *ours)
    return cached(default_cache() / "hip", key, "", lambda made: _lay_out(zig, amd, made))


def _lay_out(zig: Path, amd: Path, made: Path) -> None:
    bitcode = made / "amdgcn" / "bitcode"
    bitcode.mkdir(parents=True)
    shutil.copytree(amd / "include" / "hip", made / "include" / "hip")
    for header in _SMALL_FLOATS:
        shutil.copy(header, made / "include" / "hip")
    for name in ("ocml.bc", "ockl.bc"):
        shutil.copy(amd / "lib" / name, bitcode)
    for name, text in _constants():
        _assemble(zig, text, bitcode / f"{name}.bc")
    (made / "share" / "hip").mkdir(parents=True)
    (made / "share" / "hip" / "version").write_text(_HIP_VERSION, encoding="utf-8")


def _constants() -> Iterator[tuple[str, str]]:
    """(name of the file, its text in LLVM's language)."""
    yield "opencl", _TRIPLE  # empty: the driver only looks whether it is there
    for abi in _ABI:
        yield f"oclc_abi_version_{abi}", _TRIPLE + _CONSTANT.format("ABI_version", "i32", abi, 4)
    for name, number in _ISA.items():
        yield f"oclc_isa_version_{name}", _TRIPLE + _CONSTANT.format("ISA_version", "i32", number, 4)
    for name, constant in _SWITCHES.items():
        for value, word in enumerate(("off", "on")):
            yield f"oclc_{name}_{word}", _TRIPLE + _CONSTANT.format(constant, "i8", value, 1)


def _assemble(zig: Path, text: str, target: Path) -> None:
    source = target.with_suffix(".ll")
    source.write_text(text, encoding="utf-8")
    argv = [str(zig), "clang", "-target", "amdgcn-amd-amdhsa", "-nogpulib", "-x", "ir", "-emit-llvm", "-c"]
    done = run([*argv, str(source), "-o", str(target)], limits=Limits(wall_s=60))
    if not done.ok:
        raise JudgeFault(f"ziglang's clang could not make {target.name}: {done.output[-300:]}")
    source.unlink()
