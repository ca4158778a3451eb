"""A machine with GPUs of NVIDIA, at its outermost edge: an nvidia-smi that lists some, and an nvcc that builds for a
device which a CPU plays. `install` puts both into a folder; everything between them is the judge's own.
"""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import played

from bench.build.emulator import HEADERS
from bench.build.hip_source import as_cpp
from bench.build.toolchain import toolchains

SMI = """#!/bin/sh
case "$*" in
*compute_cap*) for gpu in {gpus}; do echo "$gpu, Played, 9.0, 1.2"; done ;;
*) echo "1000, 2000, 300, 40, 0" ;;
esac
"""
NVCC = """#!{python}
import sys
sys.path[:0] = [{root!r}, {root!r} + "/tests"]
import fake_nvidia
sys.exit(fake_nvidia.nvcc(sys.argv[1:], {bin!r}))
"""


def install(folder: Path, gpus: int) -> Path:
    """Make the toolkit below `folder`; returns the folder of its programs, for PATH."""
    programs = folder / "bin"
    for made in (programs, folder / "lib64"):
        made.mkdir(parents=True, exist_ok=True)
    for headers in (HEADERS, played.ROOT / "tests" / "played_gpu"):
        shutil.copytree(headers, folder / "include", dirs_exist_ok=True)
    subprocess.run(["g++", "-shared", "-x", "c", "/dev/null", "-o", folder / "lib64/libcudart.so.13"], check=True)
    smi = SMI.format(gpus=" ".join(map(str, range(gpus))))
    nvcc = NVCC.format(python=sys.executable, root=str(played.ROOT), bin=str(programs))
    for name, text in (("nvidia-smi", smi), ("nvcc", nvcc)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    return programs


def nvcc(words: Sequence[str], programs: str) -> int:
    """What the judge asks of nvcc: who it is, where it lies, the preprocessed text of a file, and its object."""
    if "--version" in words:
        print("played nvcc\nno compiler of NVIDIA\n13.0, played\nbuilt here")
        return 0
    if "--dryrun" in words:
        print(f"#$ _HERE_={programs}")
        return 0
    chain, what = toolchains()["hip"], next(word for word in words if word in ("-E", "-c"))
    source = Path(words[words.index(what) + 1])
    if what == "-E":  # comes first; the object is then made of what it leaves
        text = as_cpp(source.read_text())
        source.unlink()
        source.write_text(text)
    flags = [flag for flag in chain.flags if flag not in ("-I.", "-shared")]
    headers = f"-I{Path(programs).parent}/include"
    kept = [word.replace("\\,", ",") for word in words if word.startswith(("-D", "-Wa"))]
    output = words[words.index("-o") + 1]
    return subprocess.call([chain.compiler, *flags, headers, *kept, what, "-x", "c++", str(source), "-o", output])
