"""Builds for GPUs that are not here: what `kcourt build` says of registers, spills and matrix units, and when not."""

import dataclasses
import importlib.util
import shutil
import textwrap
from typing import NoReturn

import pytest

from bench.build import amd, nvidia, offload
from bench.build.gpu import Target
from bench.build.hip_kit import find_kit
from bench.court import open_court
from bench.errors import EnvironmentFault
from bench.judge.schemas import KernelUse, Language, Outcome, ProfileTool
from bench.profile import profile
from bench.profilers import isa
from bench.records import Lacking, ProfileOrder, ProfileReport
from bench.task import find_task

BASELINE = find_task("rmsnorm").gpu_baselines[0]

HOARDER = textwrap.dedent("""\
    #include <hip/hip_runtime.h>
    #include <stdint.h>
    __global__ __launch_bounds__(256) void hoard(const float *x, const float *y, float *out, int64_t n, float a) {
        __shared__ float kept[256];
        const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
        kept[threadIdx.x] = i < n ? x[i] : 0.0f;
        __syncthreads();
        if (i < n) out[i] = a * kept[threadIdx.x] + y[i];
    }
    extern "C" void axpy(const float *x, const float *y, float *out, int64_t n, float a, hipStream_t stream) {
        hoard<<<dim3((n + 255) / 256), dim3(256), 0, stream>>>(x, y, out, n, a);
    }
    """)

# The types, operators and functions of 16-bit floats that kernels are written with.
SMALL_FLOATS = textwrap.dedent("""\
    #include <hip/hip_bf16.h>
    #include <hip/hip_bfloat16.h>
    #include <hip/hip_fp16.h>
    #include <hip/hip_runtime.h>
    #include <stdint.h>
    template <class S> __device__ float through(float x, float y) {
        S a(x), b(y), c = a * b + __hfma(a, b, a) - hexp(b) / __hmax(a, hsqrt(__habs(b)));
        c += __hadd(a, __hmul(b, b));
        return a < b ? (float)c : (float)-c;
    }
    __global__ void each(const float *x, const float *y, float *out, int64_t n, float a) {
        __shared__ __half2 halves;
        __shared__ __hip_bfloat16 kept[64];
        const int64_t i = (int64_t)blockIdx.x * 64 + threadIdx.x;
        if (i >= n) return;
        kept[threadIdx.x] = __float2bfloat16(x[i]);
        const __half2 pair = __hfma2(__floats2half2_rn(x[i], y[i]), __float2half2_rn(a), __float2half2_rn(1.0f));
        const __hip_bfloat162 other = __hadd2(__floats2bfloat162_rn(x[i], y[i]), __float2bfloat162_rn(a));
        unsafeAtomicAdd(&halves, pair);
        out[i] = through<__half>(x[i], y[i]) + through<__hip_bfloat16>(x[i], y[i]) + __low2float(pair);
        out[i] += __high2float(other) + __bfloat162float(kept[threadIdx.x]) + __half2float(__float2half(a));
        out[i] += __half2float(__ushort_as_half((unsigned short)i)) + __bfloat16_as_ushort(kept[threadIdx.x]);
    }
    extern "C" void axpy(const float *x, const float *y, float *out, int64_t n, float a, hipStream_t stream) {
        each<<<(n + 63) / 64, 64, 0, stream>>>(x, y, out, n, a);
    }
    """)

# What clang 22 and ptxas 13.0 wrote for small kernels, cut to what is read.
AMD_ASSEMBLY = """
twice:
; %bb.0:
	v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[0:3]
	v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[0:3]
	s_endpgm
	.size	twice, .Lfunc_end0-twice
; Kernel info:
; Occupancy: 4
once:
	s_endpgm
	.size	once, .Lfunc_end1-once
; Occupancy: 8
	.amdgpu_metadata
---
amdhsa.kernels:
  - .agpr_count:     4
    .group_segment_fixed_size: 1024
    .name:           twice
    .private_segment_fixed_size: 16
    .sgpr_count:     20
    .sgpr_spill_count: 1
    .vgpr_count:     128
    .vgpr_spill_count: 3
    .wavefront_size: 64
  - .group_segment_fixed_size: 0
    .name:           once
    .private_segment_fixed_size: 0
    .sgpr_count:     6
    .sgpr_spill_count: 0
    .vgpr_count:     2
    .vgpr_spill_count: 0
    .wavefront_size: 64
...
	.end_amdgpu_metadata
"""
PTXAS = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z4roomPf' for 'sm_90'
ptxas info    : Function properties for _Z4roomPf
    32 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 31 registers, used 1 barriers, 32 bytes cumulative stack size, 1040 bytes smem, 368 bytes cmem[0]
ptxas info    : Compiling entry function 'none' for 'sm_90'
ptxas info    : Function properties for none
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 4 registers, used 0 barriers
"""


def test_registers_spills_and_matrix_instructions_are_read_from_amd_assembly():
    twice, once = amd.read_assembly(AMD_ASSEMBLY)
    assert twice == KernelUse(
        name="twice", vgpr=128, agpr=4, sgpr=20, spills=4, lds=1024, scratch=16, occupancy=4, matrix=2, wave=64
    )
    assert (once.vgpr, once.agpr, once.occupancy, once.matrix) == (2, 0, 8, 0)
    assert offload.heaviest([twice, once]) == {"vgpr": 128, "agpr": 4, "sgpr": 20, "spills": 4, "lds": 1024}


def test_assembly_without_kernels_has_none():
    assert list(amd.read_assembly("; nothing here\n")) == []
    assert offload.heaviest([]) == {"vgpr": 0, "agpr": 0, "sgpr": 0, "spills": 0, "lds": 0}


def test_registers_and_spills_are_read_from_ptxas():
    room, none = nvidia.read_report(PTXAS)
    assert room == KernelUse(name="_Z4roomPf", vgpr=31, spills=2, lds=1040, scratch=32, wave=32)
    assert none == KernelUse(name="none", vgpr=4, wave=32)


def lacks(target: Target) -> str:
    """Why there is no compiler for a target here."""
    if target.is_amd and shutil.which("hipcc"):
        return ""
    try:
        find_kit() if target.is_amd else nvidia.find_nvcc()
    except EnvironmentFault as fault:
        return str(fault)
    return ""


@pytest.fixture(params=list(Target))
def target(request) -> Target:
    if why := lacks(request.param):
        pytest.skip(why)
    return request.param


# One of each vendor: what they say, and how it is read, is the same for all its GPUs.
ONE_OF_EACH = pytest.mark.parametrize("target", [Target.GFX942, Target.SM_90], indirect=True)


def test_a_hip_baseline_compiles_for_every_target(kcourt, target):
    done = kcourt("build", "rmsnorm", str(BASELINE), "--target", target, "--json")
    assert done.code == 0, done.err
    found = done.json
    assert (found["kernel"], found["target"]) == ("rmsnorm", target)
    assert found["vgpr"] > 0 and found["spills"] == 0 and found["bytes"] > 0
    assert all(kernel["wave"] == (64 if target.is_amd else 32) for kernel in found["kernels"])


def test_16_bit_floats_compile_for_every_target(kcourt, target, tmp_path):
    (tmp_path / "mine.hip").write_text(SMALL_FLOATS)
    done = kcourt("build", "axpy", "mine.hip", "--target", target, "--json")
    assert done.code == 0, done.json
    assert done.json["lds"] > 0 and done.json["spills"] == 0


@ONE_OF_EACH
def test_the_table_names_kernels_as_their_author_did(kcourt, target, tmp_path):
    source = tmp_path / "mine.hip"
    source.write_text(HOARDER)
    done = kcourt("build", "axpy", str(source), "--target", target)
    assert done.code == 0, done.err
    assert "hoard" in done.out and "spills" in done.out


@ONE_OF_EACH
def test_shared_memory_is_counted_in_bytes(kcourt, target, tmp_path):
    source = tmp_path / "mine.hip"
    source.write_text(HOARDER)
    assert kcourt("build", "axpy", str(source), "--target", target, "--json").json["lds"] == 256 * 4


@ONE_OF_EACH
def test_an_error_of_the_compiler_ends_with_1_and_its_log(kcourt, target, tmp_path):
    source = tmp_path / "mine.hip"
    source.write_text(HOARDER.replace("kept[threadIdx.x] =", "keeped[threadIdx.x] ="))
    done = kcourt("build", "axpy", str(source), "--target", target, "--json")
    assert done.code == 1
    assert "keeped" in done.json["error"]["log"] and f"does not compile for {target}" in done.err


NEEDS_TRITON = pytest.mark.skipif(not importlib.util.find_spec("triton"), reason="triton is not installed")
TRITON = """\
import triton
import triton.language as tl

@triton.jit
def each(x, y, out, n, a, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, a * tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)

def axpy(x, y, out, n, a):
    assert x.shape == (n,) and x.numel() == n and x.stride(0) == 1 and x.is_contiguous()
    each[(triton.cdiv(n, 1024),)](x, y, out, n, a, BLOCK=1024, num_warps=4)
"""
TUNED = """\
import triton
import triton.language as tl

@triton.autotune(configs=[triton.Config({"BM": 64}, num_warps=warps) for warps in (4, 8)], key=["m"])
@triton.jit
def tiles(A, B, C, m, n, k, BM: tl.constexpr):
    rows, cols, inner = tl.arange(0, BM), tl.arange(0, 32), tl.arange(0, 32)
    sums = tl.zeros((BM, 32), tl.float32)
    for at in range(0, k, 32):
        a = tl.load(A + rows[:, None] * k + at + inner[None, :])
        b = tl.load(B + (at + inner)[:, None] * n + cols[None, :])
        sums = tl.dot(a.to(tl.float16), b.to(tl.float16), sums)
    tl.store(C + rows[:, None] * n + cols[None, :], sums)

def sgemm(A, B, C, m, n, k):
    tiles[lambda meta: (triton.cdiv(m, meta["BM"]),)](A, B, C, m, n, k)
"""


@NEEDS_TRITON
@pytest.mark.parametrize("target", [Target.GFX942, Target.GFX950, Target.SM_90])
def test_what_a_triton_file_launches_is_compiled(kcourt, tmp_path, target):
    (tmp_path / "mine.py").write_text(TRITON)
    done = kcourt("build", "axpy", "mine.py", "--target", target, "--json")
    assert done.code == 0, done.err
    (use,) = done.json["kernels"]
    assert use["name"].startswith("each (num_warps=4") and use["vgpr"] > 0 and use["spills"] == use["matrix"] == 0
    assert use["wave"] == (64 if target.is_amd else 32)


@NEEDS_TRITON
@pytest.mark.parametrize("target", [Target.GFX942, Target.SM_90])
def test_every_configuration_of_a_tuned_kernel_is_shown_with_its_memory(kcourt, tmp_path, target):
    (tmp_path / "mine.py").write_text(TUNED)
    done = kcourt("build", "sgemm", "mine.py", "--target", target, "--json")
    assert done.code == 0, done.err
    uses = done.json["kernels"]
    assert [use["name"].partition(",")[0] for use in uses] == ["tiles (num_warps=4", "tiles (num_warps=8"]
    assert all(use["lds"] > 0 and use["matrix"] > 0 for use in uses)


@NEEDS_TRITON
@pytest.mark.parametrize(
    ("source", "says"),
    [
        (TRITON.replace("tl.load(x + at", "tl.lode(x + at"), "lode"),
        (TRITON.replace("def axpy", "def other"), "axpy"),
        (TRITON.partition("def axpy")[0] + "def axpy(x, y, out, n, a):\n    pass\n", "it launches no kernel"),
        (TRITON.partition("def axpy")[0] + "def axpy(x, y, out, n, a):\n    out.copy_(x)\n", "copy_"),
        ("import nowhere\n", "nowhere"),
        ("def axpy(", "was never closed"),
        ("import os\nos._exit(0)\n", "it launches no kernel"),
        ("open('launches.json', 'w').write('[1]')\nimport os\nos._exit(0)\n", "it launches no kernel"),
    ],
    ids=[
        "an error",
        "no entry",
        "no launch",
        "more than launches",
        "an import",
        "syntax",
        "leaves",
        "a list of its own",
    ],
)
def test_a_triton_file_that_is_not_compiled(kcourt, tmp_path, source, says):
    (tmp_path / "mine.py").write_text(source)
    done = kcourt("build", "axpy", "mine.py", "--target", "gfx942")
    assert (done.code, says in done.err) == (1, True), done.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("axpy", "mine.c", "--target", "gfx942"), "only HIP (.hip), CUDA (.cu) and Triton (.py)"),
        (("axpy", "mine.cu", "--target", "gfx942"), "mine.cu: CUDA is not compiled for gfx942, a GPU of AMD"),
        (("axpy", "mine.hip", "--target", "gfx906"), "gfx906"),
        (("axpi", "mine.hip", "--target", "gfx942"), "axpy"),
        (("axpy", "absent.hip", "--target", "gfx942"), "cannot be read"),
    ],
)
def test_a_wrong_command_line_is_a_usage_error(kcourt, tmp_path, arguments, says):
    for name in ("mine.c", "mine.hip", "mine.cu"):
        (tmp_path / name).write_text(HOARDER)
    done = kcourt("build", *arguments)
    assert (done.code, says in done.err) == (2, True), done.err


def examined(source: str) -> ProfileReport | Lacking:
    order = ProfileOrder(kernel="axpy", language=Language.HIP, source=source, tool=ProfileTool.ISA, seed="07")
    return profile(order, open_court("limits"))


@pytest.fixture
def amd_compiler() -> None:
    if why := lacks(Target.GFX942):
        pytest.skip(why)


# Indexed by what only the call tells, the array cannot lie in registers.
INDEXED = (
    "float own[600];\n    for (int k = 0; k < 600; k++) own[k] = x[k];\n    out[n - 1] = own[(n * 7) % 600];\n    "
)
SPILLER = HOARDER.replace("kept[threadIdx.x] =", INDEXED + "kept[threadIdx.x] =")


def test_isa_shows_what_kernels_take_and_calls_nothing(amd_compiler):
    found = examined(HOARDER)
    assert isinstance(found, ProfileReport) and found.outcome is Outcome.SOLVED, found
    (use,) = found.kernels
    assert (use.lds, use.spills, use.wave) == (1024, 0, 64) and use.name.startswith("hoard(")
    first, second, *rest = found.report.splitlines()
    assert (first.startswith("isa: axpy for gfx942"), second) == (True, "no spills, and enough waves for every SIMD")
    assert any("hoard(" in line and "1024" in line for line in rest) and "s_endpgm" in found.report


def test_isa_begins_with_what_to_change(amd_compiler):
    found = examined(SPILLER)
    assert isinstance(found, ProfileReport), found
    assert "bytes of scratch a lane: index its local arrays by constants alone" in found.report.splitlines()[1]


@pytest.mark.parametrize(
    ("use", "says"),
    [
        ({"vgpr": 30}, []),
        ({"vgpr": 30, "spills": 9, "scratch": 40}, ["k spills 9 registers to memory"]),
        ({"vgpr": 30, "scratch": 40}, ["k has 40 bytes of scratch"]),
        ({"vgpr": 200, "occupancy": 2}, ["k lets only 2 waves share a SIMD, by its use of registers"]),
        ({"vgpr": 30, "occupancy": 1, "lds": 65536}, ["k lets only 1 waves share a SIMD, by its use of LDS"]),
    ],
)
def test_what_a_kernel_should_be_changed_for(use, says):
    found = isa.advice([KernelUse(name="k", wave=64, **use)])
    assert [line.startswith(start) for line, start in zip(found, says, strict=True)] == [True] * len(says)


@pytest.mark.parametrize(
    ("source", "outcome", "property"),
    [
        (HOARDER.replace("kept[threadIdx.x] =", "keeped ="), Outcome.BUILD_FAILED, "build"),
        (HOARDER + '#include "/usr/share/common-licenses/BSD"\n', Outcome.POLICY, "include"),
        (HOARDER + "// a\u200bb\n", Outcome.POLICY, "text"),
    ],
    ids=["an error", "another file", "hidden text"],
)
def test_isa_refuses_what_a_grade_refuses(amd_compiler, source, outcome, property):
    found = examined(source)
    assert isinstance(found, ProfileReport)
    assert (found.outcome, found.property, found.kernels) == (outcome, property, ())


def test_without_a_compiler_isa_says_what_to_install(monkeypatch):
    def missing(source: str, target: Target) -> NoReturn:
        raise EnvironmentFault("the package 'ziglang' is not installed; pip install 'kernelcourt[offline]'")

    monkeypatch.setattr(amd, "VENDOR", dataclasses.replace(amd.VENDOR, plan=missing))
    found = examined(HOARDER)
    assert isinstance(found, Lacking) and "kernelcourt[offline]" in found.why


def test_without_a_compiler_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(nvidia, "_NVCC", ())
    monkeypatch.setattr(nvidia, "_WHEELS", "nvidia.none")
    with pytest.raises(EnvironmentFault, match=r"nvcc was not found; install CUDA 13, or pip install"):
        nvidia.find_nvcc()
