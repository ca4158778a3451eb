"""A GPU that is played by this machine: the judge's own device code, and submissions, as the emulator runs them.

Only the device is played: buffers, runners, checks and clocks are those of a real one. Times mean nothing.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from kernels import court

from bench.build import emulator
from bench.build.gpu import READ
from bench.build.gpu_library import Kit
from bench.build.toolchain import Trace, toolchains
from bench.court import Court
from bench.devices.gpu import Gpu
from bench.judge.schemas import Device

ROOT = Path(__file__).parents[1]
REWRITE = """
import pathlib, sys
sys.path.insert(0, {root!r})
from bench.build.hip_source import as_cpp
source = pathlib.Path({name!r})
text = as_cpp(source.read_text())
source.unlink()
source.write_text(text)
"""


def steps(source: Path, flags: Sequence[str], entry: str | None) -> list[list[str]]:
    """The argvs that turn a HIP file into C++ and build that, with the memory of a played device."""
    chain, stem = toolchains()["hip"], source.stem
    compile_it = [chain.compiler, *chain.flags, f"-I{ROOT}/tests/played_gpu", f"-I{emulator.HEADERS}", *flags]
    shown = ["-nostartfiles", Trace.LINKED.of(source).name] if entry else []
    return [
        [sys.executable, "-c", REWRITE.format(root=str(ROOT), name=source.name)],
        [*compile_it, "-E", "-x", "c++", source.name, "-o", stem + READ],
        [*compile_it, "-c", "-x", "c++", source.name, "-o", f"{stem}.o"],
        [*compile_it, f"{stem}.o", "-o", f"{stem}.so", *chain.libraries, *shown],
    ]


def kit() -> Kit:
    """How libraries are made for the played device."""
    return Kit(
        device=Device.CUDA,
        target="played",
        compiler=toolchains()["hip"].version,
        steps=steps,
        at_load="none",
        dlpack=1,
        visible=(ROOT / "bench", ROOT / "tests" / "played_gpu", *{Path(sys.prefix), Path(sys.base_prefix)}),
    )


@cache
def played_gpu() -> Gpu:
    return Gpu(kit(), flush_bytes=1 << 20)


@cache
def played_court() -> Court:
    """The court of this test process on the played device, where Triton is interpreted."""
    ours = court()
    sandbox = replace(ours.sandbox, variables={**ours.sandbox.variables, "TRITON_INTERPRET": "1"})
    return replace(ours, gpu=played_gpu(), sandbox=sandbox)
