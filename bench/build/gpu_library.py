"""Builds HIP and CUDA to libraries for the GPU that is here: submissions, baselines, and the judge's own pieces."""

import re
import shlex
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.build import amd, nvidia
from bench.build.gpu import READ, Target
from bench.build.toolchain import LINKED_BY_NAME, Artifact, Trace
from bench.cache import cached, content_key, default_cache
from bench.errors import EnvironmentFault
from bench.judge.schemas import Device, Language, Outcome
from bench.process import Limits, run
from bench.sandbox import BUILD_LIMITS, Sandbox, scratch_folder
from bench.verdict import Rejected

NATIVE = Path(__file__).parents[1] / "native"
_OWN_LIMITS = Limits(wall_s=300)
# Files that nvcc makes on its way from a source to an object, as the assembler names them; some lie in TMPDIR, which
# without a sandbox's own /tmp is the folder of the build.
PASSING = re.compile(r"tmpxft_\w+-\d+_[^/]*\.cudafe1\.(?:cpp|stub\.c)|(?:/tmp/)?cc\w+\.s|-")

Steps = Callable[[Path, Sequence[str], str | None], list[list[str]]]


@dataclass(frozen=True)
class Kit:
    """How libraries are made for the GPU that is here.

    `steps(source, flags, entry)` are the argvs that build a file beside itself, as those of a `Toolchain` do; builds
    see the folders `visible` beside the system's own, and find copies of `headers` beside their source. `runtime` is
    where a runner finds what libraries are linked with, and `at_load` the function with which the compiler makes a
    library hand over its device code when it is loaded. `dlpack` is the device's type as DLPack numbers them.
    """

    device: Device
    target: str
    compiler: str
    steps: Steps
    at_load: str
    dlpack: int
    visible: tuple[Path, ...] = ()
    headers: Path | None = None
    runtime: tuple[Path, ...] = ()


def nvidia_kit(target: Target) -> Kit:
    """nvcc of this machine.

    Raises:
        EnvironmentFault: it, or its runtime library, was not found.
    """
    cuda = nvidia.toolkit(nvidia.find_nvcc())
    nvcc = str(cuda / "bin/nvcc")  # behind links and scripts: it names the headers that it reads after its own place
    runtime = nvidia.find_runtime(cuda)

    def steps(source: Path, flags: Sequence[str], entry: str | None) -> list[list[str]]:
        compile_it = [nvcc, "-x", "cu", f"-arch={target}", *nvidia.FLAGS, "-I.", *flags]
        noted = f"-Wa\\,--MD\\,{Trace.ASSEMBLED.of(source).name}"
        for_a_library = ["-Xcompiler", "-fPIC", "-Xcompiler", noted]
        return _steps(source, compile_it, for_a_library, [str(runtime)], _shown(source, entry, runtime.parent))

    return Kit(
        device=Device.CUDA,
        target=target,
        compiler=nvidia.version(nvcc),
        steps=steps,
        at_load="_ZL24__sti____cudaRegisterAllv",
        dlpack=2,
        visible=(cuda,),
        headers=nvidia.HEADERS,
        runtime=(runtime.parent,),
    )


def amd_kit(target: Target) -> Kit:
    """ROCm's hipcc of this machine; written after its documentation, and not run yet.

    Raises:
        EnvironmentFault: it was not found.
    """
    hipcc = amd.find_hipcc()
    if not hipcc:
        raise EnvironmentFault("hipcc was not found; install ROCm (its compiler is in the package hip-dev)")
    rocm = Path(hipcc).resolve().parents[1]

    def steps(source: Path, flags: Sequence[str], entry: str | None) -> list[list[str]]:
        compile_it = [hipcc, "-x", "hip", f"--offload-arch={target}", *amd.FLAGS, "-I.", *flags]
        runtime = [f"-L{rocm}/lib", "-lamdhip64"]
        return _steps(source, compile_it, ["-fPIC"], runtime, _shown(source, entry, rocm / "lib"))

    return Kit(
        device=Device.HIP,
        target=target,
        compiler=amd.version(hipcc),
        steps=steps,
        at_load="__hip_module_ctor",
        dlpack=10,
        visible=(rocm,),
        runtime=(rocm / "lib",),
    )


def _steps(
    source: Path, compile_it: list[str], for_a_library: list[str], runtime: list[str], shown: list[str]
) -> list[list[str]]:
    """Preprocess, for the gates to read; compile; link."""
    name, stem = source.name, source.stem
    return [
        [*compile_it, "-E", name, "-o", stem + READ],
        [*compile_it, *for_a_library, "-c", name, "-o", f"{stem}.o"],
        ["g++", "-shared", f"{stem}.o", "-o", f"{stem}.so", *runtime, "-Wl,-z,now", *shown],
    ]


def _shown(source: Path, entry: str | None, runtime: Path) -> list[str]:
    """What tells the linker to show an entry alone; a piece of the judge's own says where its libraries are."""
    return ["-nostartfiles", Trace.LINKED.of(source).name] if entry else [f"-Wl,-rpath,{runtime}"]


def build(
    sandbox: Sandbox,
    folder: Path,
    source: Path,
    language: Language,
    kit: Kit,
    flags: Sequence[str] = (),
    entry: str | None = None,
) -> Artifact:
    """Build one file in `folder` to a library beside it, inside the sandbox and its build limits.

    Raises:
        Rejected: the compiler failed or was over its limits (`build_failed`), with its log.
    """
    if kit.headers:
        shutil.copytree(kit.headers, folder, dirs_exist_ok=True)
    if entry:
        Trace.LINKED.of(source).write_text(LINKED_BY_NAME.format(entry=entry), encoding="utf-8")
    steps = kit.steps(source, flags, entry)
    done = sandbox.run(["sh", "-c", " && ".join(map(shlex.join, steps))], BUILD_LIMITS, folder, kit.visible)
    library = source.with_suffix(".so")
    if not done.ok or not library.is_file():
        what = f"it was stopped after {BUILD_LIMITS.wall_s} s; make the source smaller"
        message = what if done.timed_out else f"it does not compile for {kit.target}; mend the first error in the log"
        raise Rejected(Outcome.BUILD_FAILED, "build", {"message": message}, done.output)
    return Artifact(library, language, tuple(map(tuple, steps)), kit.compiler)


def own_library(kit: Kit, name: str) -> Path:
    """One HIP file of `bench/native` as a library for this GPU, cached by content.

    Raises:
        EnvironmentFault: it does not build; the message holds the compiler's output.
    """
    text = (NATIVE / name).read_bytes()
    headers = sorted([*NATIVE.glob("*.h"), *(kit.headers.rglob("*.h") if kit.headers else ())])
    steps = kit.steps(Path(name), (), None)
    key = content_key(text, *(path.read_bytes() for path in headers), repr(steps), kit.compiler)

    def make(target: Path) -> None:
        with scratch_folder() as folder:
            for path in NATIVE.glob("*.h"):
                shutil.copy(path, folder)
            if kit.headers:
                shutil.copytree(kit.headers, folder, dirs_exist_ok=True)
            (folder / name).write_bytes(text)
            done = run(["sh", "-c", " && ".join(map(shlex.join, steps))], limits=_OWN_LIMITS, cwd=folder)
            if not done.ok:
                raise EnvironmentFault(f"{kit.compiler} could not build the judge's own {name}:\n{done.output[-2000:]}")
            shutil.copy((folder / name).with_suffix(".so"), target)

    return cached(default_cache() / "native", key, ".so", make)
