"""Libraries for GPUs of NVIDIA: what nvcc makes of a source, and what of it is not to be loaded. No device is here."""

from functools import cache

import pytest
from kernels import HONEST_HIP, court, order
from test_emulated import LAUNCH, axpy_hip

from bench.build.gpu import Target
from bench.build.gpu_library import Kit, nvidia_kit, own_library
from bench.errors import EnvironmentFault
from bench.gates import artifacts, imports
from bench.judge.schemas import Device, Language, Outcome
from bench.sandbox import Level, scratch_folder
from bench.task import find_task
from bench.verdict import Rejected


@cache
def kit() -> Kit:
    """nvcc of this machine, or a skip that says what is missing."""
    try:
        return nvidia_kit(Target.SM_90)
    except EnvironmentFault as fault:
        pytest.skip(str(fault))


def made(source: str, language: Language = Language.HIP, level: Level | None = None) -> set[str]:
    """Build a source, and let the gates look at it; the files that are there then."""
    with scratch_folder() as folder:
        artifacts.make(court(level).sandbox, folder, find_task("axpy"), order(source, language), kit=kit())
        return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("level", [None, Level.LIMITS], ids=["best", "limits"])
def test_an_honest_kernel_passes_the_gates(level):
    assert "axpy.so" in made(HONEST_HIP, level=level)


def test_an_honest_kernel_in_cuda_passes_the_gates():
    source = HONEST_HIP.replace("hip/hip_runtime.h", "cuda_runtime.h").replace("hipStream_t", "cudaStream_t")
    assert {"axpy.cu", "axpy.so"} <= made(source, Language.CUDA)


@pytest.mark.parametrize("name", ["judge.hip", "borrow.hip"])
def test_the_judges_own_pieces_build_for_a_gpu(name):
    assert own_library(kit(), name).stat().st_size > 10_000


@pytest.mark.parametrize(
    ("before", "launch", "property"),
    [
        ("int begun; __attribute__((constructor)) static void early() { begun = 1; }", LAUNCH, "init_code"),
        ("struct Early { Early() { at = this; } void *at; } early;", LAUNCH, "init_code"),
        (
            'asm(".section .text\\nearly: ret\\n.section .init_array,\\"aw\\"\\n.quad early\\n.text");',
            LAUNCH,
            "init_code",
        ),
        ("", f"hipStream_t side; hipStreamCreate(&side); {LAUNCH}", "imports"),
        ("#include <dlfcn.h>", f'dlopen("libcuda.so.1", 1); {LAUNCH}', "imports"),
        ('#include "/etc/alternatives/README"', LAUNCH, "include"),
        ('asm(".incbin \\"/etc/alternatives/README\\"");', LAUNCH, "include"),
        ('extern "C" int omp_get_num_threads() { return 0; }', LAUNCH, "symbols"),
    ],
    ids=[
        *("constructor", "global object", "assembly", "side stream", "dlopen", "include", "incbin"),
        "stands in for the runtime",
    ],
)
def test_what_no_kernel_needs_is_policy(before, launch, property):
    with pytest.raises(Rejected) as caught:
        made(axpy_hip(before=before, launch=launch))
    assert (caught.value.outcome, caught.value.property) == (Outcome.POLICY, property), caught.value.log or caught.value


@pytest.mark.parametrize("device", [Device.CUDA, Device.HIP])
@pytest.mark.parametrize(
    "name",
    [
        *("StreamCreate", "StreamCreateWithFlags", "StreamBeginCapture", "GraphLaunch", "EventCreate", "EventRecord"),
        *("LaunchHostFunc", "Malloc", "MallocManaged", "HostMalloc", "HostAlloc", "HostRegister", "Memcpy", "Free"),
        *("DeviceReset", "SetDevice", "IpcOpenMemHandle", "ModuleLoad", "GetDriverEntryPointByVersion"),
    ],
)
def test_other_streams_events_graphs_and_memory_are_not_for_kernels(device, name):
    prefix = "cuda" if device is Device.CUDA else "hip"
    assert not imports.allowed(f"{prefix}{name}", Language.HIP, device)


@pytest.mark.parametrize("device", [Device.CUDA, Device.HIP])
@pytest.mark.parametrize("name", ["LaunchKernel", "MallocAsync", "MemsetAsync", "MemcpyAsync", "GetLastError"])
def test_launches_and_memory_of_the_stream_are_for_kernels_on_a_gpu_alone(device, name):
    prefix = "cuda" if device is Device.CUDA else "hip"
    assert imports.allowed(f"{prefix}{name}", Language.HIP, device)
    assert not imports.allowed(f"{prefix}{name}", Language.CPP)


def test_an_error_names_the_authors_file_and_line():
    with pytest.raises(Rejected) as caught:
        made(axpy_hip("mistake"))
    assert caught.value.outcome is Outcome.BUILD_FAILED and "axpy.hip(4)" in caught.value.log
