"""HIP on the CPU: the headers that stand in for HIP's own, and what is rewritten before a compiler reads a source."""

import ctypes
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.build.hip_source import as_cpp
from bench.build.toolchain import toolchains
from bench.gates import binary
from bench.judge.schemas import Language

HEADERS = Path(__file__).parents[1] / "bench" / "native" / "hip_cpu" / "hip"
FLAGS = ("-std=gnu++20", "-O2", "-Wall", "-Wno-sign-compare", "-Werror", "-fPIC", "-shared", "-nostartfiles", "-I.")
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")

KERNELS = r"""
#include <hip/hip_bf16.h>
#include <hip/hip_bfloat16.h>
#include <hip/hip_cooperative_groups.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
namespace cg = cooperative_groups;

static_assert(alignof(float4) == 16 && alignof(float2) == 8 && alignof(float3) == 4 && sizeof(float3) == 12);
static_assert(alignof(double2) == 16 && alignof(char4) == 4 && alignof(int1) == 4 && sizeof(__half2) == 4);

// Waves

__global__ void sum_wave(const float *x, float *sums) {
  float sum = x[blockIdx.x * blockDim.x + threadIdx.x];
  for (int far = warpSize / 2; far > 0; far /= 2) sum += __shfl_down(sum, far);
  if (threadIdx.x % warpSize == 0) sums[(blockIdx.x * blockDim.x + threadIdx.x) / warpSize] = sum;
}
extern "C" int wave_sums(const float *x, float *sums, int n) {
  sum_wave<<<n / 256, 256>>>(x, sums);
  return warpSize;
}

template <class T> __global__ void shuffle(const T *x, T *out, int width) {
  int t = threadIdx.x, n = blockDim.x;
  unsigned long long all = ~0ull;
  out[t] = __shfl(x[t], t * 5 + 3, width);
  out[n + t] = __shfl_up_sync(all, x[t], 3, width);
  out[2 * n + t] = __shfl_down(x[t], 3, width);
  out[3 * n + t] = __shfl_xor_sync(all, x[t], 5, width);
}
extern "C" void shuffles(const int *x, int *out, const double *y, double *wide, int n, int width) {
  shuffle<<<1, n>>>(x, out, width);
  shuffle<double><<<1, n>>>(y, wide, width);
}

__global__ void poll(const int *x, unsigned long long *out) {
  int t = threadIdx.x, n = blockDim.x;
  auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  out[t] = __ballot(x[t] > 5);
  out[n + t] = __any(x[t] > 8);
  out[2 * n + t] = __all_sync(~0ull, x[t] > 0);
  out[3 * n + t] = __activemask();
  out[4 * n + t] = tile.ballot(x[t] > 5);
  out[5 * n + t] = tile.shfl(x[t], 2);
  out[6 * n + t] = __builtin_amdgcn_readfirstlane(x[t]);
  out[7 * n + t] = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
  out[8 * n + t] = __builtin_amdgcn_update_dpp(-1, x[t], 0x111, 0xf, 0xf, false); // row_shr:1
}
extern "C" void polls(const int *x, unsigned long long *out, int n) { poll<<<1, n>>>(x, out); }

// Every third lane goes, and the others neither wait for it nor hear of it.
__global__ void thin_out(int *x, unsigned long long *lanes) {
  int t = threadIdx.x;
  if (t % 3 == 0) return;
  x[t] = __shfl_down(t, 1);
  lanes[t] = __ballot(1);
}
extern "C" void thinned(int *x, unsigned long long *lanes, int n) { thin_out<<<1, n>>>(x, lanes); }

// Whole waves may leave before a barrier.
__global__ void leave(int *x) {
  if (threadIdx.x >= warpSize) return;
  __shared__ int seen[KC_WAVE];
  seen[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = seen[warpSize - 1 - threadIdx.x];
}
extern "C" void leaves(int *x) { leave<<<1, 4 * warpSize>>>(x); }

#ifndef WAVES_ALONE
// Grids

__global__ void add_2d(const float *a, const float *b, float *c, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) c[y * width + x] = a[y * width + x] + b[y * width + x];
}
extern "C" void add(const float *a, const float *b, float *c, int width, int height) {
  dim3 block(32, 4);
  add_2d<<<dim3((width + block.x - 1) / block.x, (height + block.y - 1) / block.y), block>>>(a, b, c, width, height);
}

__global__ void count_visits(int *visits) {
  unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  visits[block * (blockDim.x * blockDim.y * blockDim.z) + thread]++;
}
extern "C" void visit(int *visits, const unsigned *grid, const unsigned *block) {
  count_visits<<<dim3(grid[0], grid[1], grid[2]), dim3{block[0], block[1], block[2]}>>>(visits);
}

template <class T, int STEPS> __global__ void climb(T *x, T by) {
  for (int i = 0; i < STEPS; i++) x[threadIdx.x] += by;
}
#define CLIMB(T, steps, x, by, n) \
  climb<T, steps>                 \
      <<<dim3(1), (n)>>>(x, by)
extern "C" void climb_all(float *x, long long *y, int n) {
  CLIMB(float, 3, x, 0.5, n);
  hipLaunchKernelGGL(HIP_KERNEL_NAME(climb<long long, 2>), dim3(1), dim3(n), 0, nullptr, y, 7);
}

__global__ void triple(const float *x, float *y) { y[threadIdx.x] = 3 * x[threadIdx.x]; }
__global__ void next_to(const float *y, float *z, int n) { z[threadIdx.x] = y[(threadIdx.x + 1) % n]; }
extern "C" int chain(const float *x, float *z, int n) {
  float *y;
  if (hipMalloc(&y, n * sizeof(float)) != hipSuccess) return 1;
  hipStream_t stream;
  (void)hipStreamCreate(&stream);
  triple<<<1, n, 0, stream>>>(x, y);
  next_to<<<1, n, 0, stream>>>(y, z, n);
  (void)hipStreamSynchronize(stream), (void)hipStreamDestroy(stream), (void)hipFree(y);
  return hipGetLastError();
}

// An argument is read once, when the kernel is launched, and a null pointer may be written as a number.
__global__ void take(int *x, int first, const int *more) { x[threadIdx.x] = more ? -1 : first + (int)threadIdx.x; }
extern "C" int take_all(int *x, int n) {
  int launches = 0;
  take<<<1, n>>>(x, x[0] + launches++, NULL);
  take<<<1, n>>>(x, x[0] + launches++, 0);
  return launches;
}

// Blocks

__global__ void sum_block(const float *x, float *sums, int n) {
  __shared__ float partial[256];
  unsigned t = threadIdx.x;
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + t; i < n; i += blockDim.x * gridDim.x) sum += x[i];
  partial[t] = sum;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (t < half) partial[t] += partial[t + half];
    __syncthreads();
  }
  if (t == 0) sums[blockIdx.x] = partial[0];
}
extern "C" void block_sums(const float *x, float *sums, int n, int blocks) { sum_block<<<blocks, 256>>>(x, sums, n); }

/* As CUDA's waves would do it: half a wave where there are 64 lanes, the others ahead at the barrier. */
__global__ void sum_by_32(float *x) {
  if (threadIdx.x < 32) {
    float sum = x[threadIdx.x] + x[threadIdx.x + 32];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down(sum, step);
    if (threadIdx.x == 0) x[64] = sum;
  }
  __syncthreads();
  x[threadIdx.x] = x[64];
}
extern "C" void sum_32(float *x) { sum_by_32<<<1, 64>>>(x); }

__global__ void reverse(int *x) {
  extern __shared__ int row[];
  row[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = row[blockDim.x - 1 - threadIdx.x];
}
__global__ void transpose(const double *x, double *y) {
  extern __shared__ __align__(16) double tile[][17];
  tile[threadIdx.y][threadIdx.x] = x[threadIdx.y * 16 + threadIdx.x];
  __syncthreads();
  y[threadIdx.y * 16 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
__global__ void show(unsigned char *bytes) {
  HIP_DYNAMIC_SHARED(unsigned char, unset)
  bytes[blockIdx.x * blockDim.x + threadIdx.x] = unset[threadIdx.x];
  __syncthreads();
  unset[threadIdx.x] = 1;
}
extern "C" void dynamic(int *x, int n, const double *y, double *z, unsigned char *bytes) {
  reverse<<<1, n, n * sizeof(int)>>>(x);
  transpose<<<1, dim3(16, 16), 16 * 17 * sizeof(double)>>>(y, z);
  show<<<2, 64, 64>>>(bytes);
}

__global__ void vote(const int *x, int *out) {
  int mine = x[threadIdx.x], n = blockDim.x, t = threadIdx.x;
  out[t] = __syncthreads_count(mine > 5);
  out[n + t] = __syncthreads_and(mine > 5);
  out[2 * n + t] = __syncthreads_or(mine > 5);
}
extern "C" void votes(const int *x, int *out, int n) { vote<<<1, n>>>(x, out); }

template <int WAY> __global__ void unsafe(const int *x, int *y, int n) {
  __shared__ int row[1024];
  int t = threadIdx.x, block = blockIdx.x * n;
  const int from[] = {n - 1 - t, (t + 1) % n, (t + n - 1) % n, 0, n - 1};
  row[t] = x[block + t];
  if (WAY < 0) __syncthreads();
  y[block + t] = row[from[WAY < 0 ? -1 - WAY : WAY]];
  __syncthreads();
  row[t] = -1;
}
extern "C" void missing_barrier(const int *x, int *y, int n, int way) {
#define UNSAFE(w) case w: unsafe<w><<<1, n>>>(x, y, n); break;
  switch (way) {
    UNSAFE(0) UNSAFE(1) UNSAFE(2) UNSAFE(3) UNSAFE(4)
    UNSAFE(-1) UNSAFE(-2) UNSAFE(-3) UNSAFE(-4) UNSAFE(-5)
  }
}

// Atomics

__global__ void count(const int *x, int n, unsigned *bins, float *sum, int *range, unsigned *ring, int *first) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  atomicAdd(&bins[x[i]], 1);
  atomicAdd(sum, 0.5);
  atomicMin(&range[0], x[i]);
  atomicMax(&range[1], x[i]);
  atomicInc(ring, 6);
  atomicCAS(first, -1, i);
  __hip_atomic_fetch_add(&bins[x[i]], 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
extern "C" void histogram(const int *x, int n, unsigned *bins, float *sum, int *range, unsigned *ring, int *first) {
  count<<<(n + 99) / 100, 100>>>(x, n, bins, sum, range, ring, first);
}

// Small floats

template <class S> __global__ void small_ops(const float *x, const float *y, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  S a(x[i]), b(y[i]);
  const S results[] = {a, a + b, a - b, a * b, a / b, -a, __hadd(a, b), __hmul(a, b), __hfma(a, b, a), __habs(a),
                       __hmax(a, b), __hmin(a, b), hsqrt(__habs(a)), hexp(b), S(a < b ? 1.0f : 0.0f)};
  for (unsigned k = 0; k < sizeof results / sizeof *results; k++) out[k * n + i] = results[k];
}
extern "C" void small(const float *x, const float *y, float *half_out, float *bf16_out, int n) {
  small_ops<__half><<<(n + 63) / 64, 64>>>(x, y, half_out, n);
  small_ops<__hip_bfloat16><<<(n + 63) / 64, 64>>>(x, y, bf16_out, n);
}
extern "C" void small_bits(const float *x, unsigned short *out, int n) {
  for (int i = 0; i < n; i++) {
    const unsigned short bits[] = {
        __half_as_ushort(__float2half(x[i])),    __half_as_ushort(__float2half_rd(x[i])),
        __half_as_ushort(__float2half_ru(x[i])), __half_as_ushort(__float2half_rz(x[i])),
        __bfloat16_as_ushort(__float2bfloat16(x[i])), hip_bfloat16(x[i]).data,
    };
    for (int k = 0; k < 6; k++) out[k * n + i] = bits[k];
  }
}
extern "C" int pairs() {
  half2 a = __floats2half2_rn(1.5f, -2), b = __hfma2(a, a, __half2half2(__float2half(1)));
  float2 c = __half22float2(b * __lowhigh2highlow(a) + a);
  __hip_bfloat162 d = __hadd2(__floats2bfloat162_rn(1, 2), __float2bfloat162_rn(3));
  hip_bfloat16 e = hip_bfloat16(3.0f) * hip_bfloat16(4.0f);
  return c == make_float2(-5, 5.5) && __low2float(d) == 4 && __high2float(d) == 5 && e == 12.0f && __hbeq2(a, a);
}

// Values

extern "C" int vectors() {
  float4 a = {1, 2, 3, 4}, b = make_float4(4, 3, 2, 1);
  a += b * 2;
  a = 1.0f - a / 2.0;
  int3 c{7, 8, 9};
  c = (c % 4 << 1) | 1;
  uint2 d(5u);
  ++d;
  dim3 e(3, 4);
  uint3 f = e;
  return a == float4(-3.5f, -3.0f, -2.5f, -2.0f) && -a != a && c == int3(7, 1, 3) && d == make_uint2(6, 6) && f.z == 1;
}

extern "C" void integers(const int *x, const int *y, long long *out, int n) {
  for (int i = 0; i < n; i++) {
    int a = x[i], b = y[i];
    const long long results[] = {
        __popc(a), __clz(a), __ffs(a), (long long)__brev(a), __mulhi(a, b), (long long)__umulhi(a, b), __mul24(a, b),
        (long long)__sad(a, b, 1u), __hadd(a, b), __rhadd(a, b), (long long)__byte_perm(a, b, 0x7531),
        (long long)__funnelshift_l(a, b, 9), (long long)__funnelshift_r(a, b, 9), min(a, b), max(a, b),
        __float_as_int((float)a), __mul64hi((long long)a << 32, (long long)b << 32),
    };
    for (int k = 0; k < 17; k++) out[k * n + i] = results[k];
  }
}
extern "C" void reals(const double *x, double *out, int n) {
  for (int i = 0; i < n; i++) {
    const double results[] = {rsqrt(x[i]), rcbrt(x[i]), sinpi(x[i]), cospi(x[i]), normcdf(x[i]), erfcx(x[i]),
                              exp10(x[i] / 8), __expf(x[i] / 8), __saturatef(x[i]), (double)__float2int_rn(x[i]),
                              (double)__float2int_rd(x[i]), max(x[i], 2), min(NAN, x[i]),
                              __builtin_amdgcn_fmed3f(x[i], 1, 3)};
    for (int k = 0; k < 14; k++) out[k * n + i] = results[k];
  }
}
extern "C" void converted(const float *x, long long *out, int n) {
  for (int i = 0; i < n; i++) {
    out[i] = __float2int_rz(x[i]);
    out[n + i] = __float2uint_rn(x[i]);
    out[2 * n + i] = __float2ll_rz(x[i]);
  }
}

// The runtime

__constant__ float table[4];
__device__ int counter;
__global__ void look_up(float *out) { out[threadIdx.x] = table[threadIdx.x] + counter; }
extern "C" int symbols(const float *values, float *out) {
  int two = 2, back = 0;
  (void)hipMemcpyToSymbol(HIP_SYMBOL(table), values, 4 * sizeof(float));
  (void)hipMemcpyToSymbol(counter, &two, sizeof two);
  look_up<<<1, 4>>>(out);
  (void)hipMemcpyFromSymbol(&back, counter, sizeof back);
  return back == 2 && hipMemcpyToSymbol(table, values, 8, 12) == hipErrorInvalidValue &&
         hipGetLastError() == hipErrorInvalidValue;
}
extern "C" int runtime(unsigned char *fresh, int *filled) {
  hipDeviceProp_t properties;
  int device = -1, count = 0, warp = 0, blocks = 0;
  hipEvent_t start, stop;
  float elapsed = -1;
  void *memory;
  bool good = !hipGetDevice(&device) && !hipGetDeviceCount(&count) && !hipGetDeviceProperties(&properties, device);
  good = good && device == 0 && count == 1 && properties.warpSize == warpSize && !hipSetDevice(0);
  good = good && !hipDeviceGetAttribute(&warp, hipDeviceAttributeWarpSize, 0) && warp == warpSize;
  good = good && !hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, triple, 256, 0) && blocks == 8;
  good = good && !hipEventCreate(&start) && !hipEventCreate(&stop) && !hipEventRecord(start) && !hipEventRecord(stop);
  good = good && !hipEventElapsedTime(&elapsed, start, stop) && elapsed == 0 && !hipEventDestroy(start);
  good = good && !hipMalloc(&memory, 16) && !hipMemcpy(fresh, memory, 16, hipMemcpyDeviceToHost) && !hipFree(memory);
  good = good && !hipMemsetD32Async(filled, 0x01020304, 3);
  good = good && !hipMemcpy2D(filled + 3, 4, filled, 8, 4, 2, hipMemcpyDefault);
  good = good && hipSetDevice(1) == hipErrorInvalidDevice && hipPeekAtLastError() == hipErrorInvalidDevice;
  return good && hipGetLastError() == hipErrorInvalidDevice && hipGetLastError() == hipSuccess;
}
extern "C" const char *launch_error(const unsigned *grid, const unsigned *block, unsigned bytes, int *ran) {
  count_visits<<<dim3(grid[0], grid[1], grid[2]), dim3(block[0], block[1], block[2]), bytes>>>(ran);
  return hipGetErrorName(hipGetLastError());
}

// Faults

__global__ void part_of_a_wave_returns() {
  if (threadIdx.x % 64 < 24) return;
  __syncthreads();
}
__global__ void barrier_or_shuffle(int *x) {
  if (threadIdx.x % 2) __syncthreads();
  else x[threadIdx.x] = __shfl(1, 0);
}
__global__ void shuffle_or_ballot(int *x) { x[threadIdx.x] = threadIdx.x % 2 ? __shfl(1, 0) : (int)__ballot(1); }
__global__ void either_shuffle(int *x) {
  if (threadIdx.x < 32)
    x[threadIdx.x] = __shfl(1, 0);
  else
    x[threadIdx.x] = __shfl(2, 0);
}
__device__ int deep(volatile int *x, int n) {
  volatile char room[4096];
  for (int i = 0; i < 4096; i++) room[i] = (char)*x;
  return n ? deep(x, n - 1) + room[n] : 0;
}
__global__ void deeper_than_its_stack(int *x) { x[0] = deep(x, 17); }
extern "C" void fault(int which) {
  static int x[1024];
  switch (which) {
    case 0: part_of_a_wave_returns<<<3, 128>>>(); break;
    case 1: barrier_or_shuffle<<<1, 64>>>(x); break;
    case 2: shuffle_or_ballot<<<dim3(1, 1, 1), 64>>>(x); break;
    case 3: deeper_than_its_stack<<<1, 1>>>(x); break;
    case 4: __syncthreads(); break;
    case 5: either_shuffle<<<1, 64>>>(x); break;
  }
}
#endif
"""


def compiled(folder: Path, source: str, *options: str, name: str = "kernels") -> Path:
    """The library that a HIP source becomes."""
    (folder / "hip").symlink_to(HEADERS)
    (folder / f"{name}.cpp").write_text(as_cpp(source))
    argv = ["g++", *FLAGS, *options, f"{name}.cpp", "-o", f"{name}.so", "-lm"]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / f"{name}.so"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], ctypes.CDLL]:
    """`KERNELS` as a library whose waves have so many lanes: of 64 lanes all of it, of others what is about waves."""
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed; on Debian: apt-get install g++")
    built: dict[int, ctypes.CDLL] = {}

    def of(wave: int) -> ctypes.CDLL:
        if wave not in built:
            options = [] if wave == 64 else [f"-DKC_WAVE={wave}", "-DWAVES_ALONE"]
            path = compiled(tmp_path_factory.mktemp(f"wave{wave}"), KERNELS, *options)
            built[wave] = ctypes.CDLL(str(path))
        return built[wave]

    return of


@pytest.fixture
def call(library: Callable[[int], ctypes.CDLL]) -> Callable[..., Any]:
    """Calls a function of `KERNELS` with arrays and numbers; `wave` is how wide its waves are."""

    def made(name: str, *arguments: Any, wave: int = 64) -> Any:
        return library(wave)[name](*map(passed, arguments))

    return made


def passed(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        assert argument.flags.c_contiguous
        return argument.ctypes.data_as(ctypes.c_void_p)
    return argument


RANDOM = np.random.default_rng(7)


def floats(count: int) -> np.ndarray:
    return RANDOM.standard_normal(count).astype(np.float32)


# Grids


@pytest.mark.parametrize(("width", "height"), [(1, 1), (31, 5), (100, 37), (64, 64)])
def test_a_grid_of_two_dimensions(call: Callable[..., Any], width: int, height: int) -> None:
    a, b, c = floats(width * height), floats(width * height), floats(width * height)
    call("add", a, b, c, width, height)
    assert np.array_equal(c, a + b)


@pytest.mark.parametrize("grid", [(1, 1, 1), (2, 1, 1), (7, 1, 1), (64, 1, 1), (5, 4, 3), (1, 1, 33), (1000, 1, 1)])
@pytest.mark.parametrize("block", [(1, 1, 1), (65, 1, 1), (4, 8, 2)])
def test_each_thread_of_a_grid_runs_once(
    call: Callable[..., Any], grid: tuple[int, ...], block: tuple[int, ...]
) -> None:
    visits = np.zeros(int(np.prod(grid) * np.prod(block)), np.int32)
    call("visit", visits, np.array(grid, np.uint32), np.array(block, np.uint32))
    assert np.all(visits == 1)


def test_templates_launched_in_macros(call: Callable[..., Any]) -> None:
    x, y = np.zeros(70, np.float32), np.zeros(70, np.int64)
    call("climb_all", x, y, 70)
    assert np.all(x == 1.5)
    assert np.all(y == 14)


def test_launches_depend_on_each_other(call: Callable[..., Any]) -> None:
    x, z = floats(300), floats(300)
    assert call("chain", x, z, 300) == 0
    assert np.array_equal(z, np.roll(3 * x, -1))


def test_arguments_are_taken_once(call: Callable[..., Any]) -> None:
    x = np.full(8, 10, np.int32)
    assert call("take_all", x, 8) == 2
    assert x.tolist() == list(range(11, 19))


# Blocks


@pytest.mark.parametrize(("count", "blocks"), [(1, 1), (1000, 3), (5000, 16)])
def test_a_block_reduces_in_shared_memory(call: Callable[..., Any], count: int, blocks: int) -> None:
    x = RANDOM.integers(-9, 9, count).astype(np.float32)
    sums = np.zeros(blocks, np.float32)
    call("block_sums", x, sums, count, blocks)
    assert sums.sum() == x.sum()
    assert sums[0] == sum(x[first : first + 256].sum() for first in range(0, count, 256 * blocks))


def test_dynamic_shared_memory_of_several_kernels(call: Callable[..., Any]) -> None:
    x, y, z = np.arange(200, dtype=np.int32), RANDOM.random((16, 16)), np.zeros((16, 16))
    bytes_ = np.zeros(128, np.uint8)
    call("dynamic", x, 200, y, z, bytes_)
    assert x.tolist() == list(range(199, -1, -1))
    assert np.array_equal(z, y.T)
    assert np.all(bytes_ == 0xCD), "it was filled before each block"


@pytest.mark.parametrize("values", [[9] * 100, [1] * 100, [*range(100)]], ids=["all", "none", "some"])
def test_a_barrier_counts(call: Callable[..., Any], values: list[int]) -> None:
    out = np.zeros((3, 100), np.int32)
    call("votes", np.array(values, np.int32), out, 100)
    said = [value > 5 for value in values]
    assert out.T.tolist() == [[sum(said), all(said), any(said)]] * 100


@pytest.mark.parametrize("wave", [32, 64])
def test_a_barrier_does_not_wait_for_waves_that_left(call: Callable[..., Any], wave: int) -> None:
    x = np.arange(wave, dtype=np.int32)
    call("leaves", x, wave=wave)
    assert x.tolist() == list(range(wave - 1, -1, -1))


WAYS = ["from the other end", "from above", "from below", "from the first", "from the last"]


@pytest.mark.parametrize("count", [16, 64, 96, 256, 1024])
@pytest.mark.parametrize("way", range(len(WAYS)), ids=WAYS)
def test_a_missing_barrier_shows_in_a_single_block(call: Callable[..., Any], way: int, count: int) -> None:
    x, right, wrong = np.arange(1, count + 1, dtype=np.int32), np.zeros(count, np.int32), np.zeros(count, np.int32)
    call("missing_barrier", x, right, count, -1 - way)
    call("missing_barrier", x, wrong, count, way)
    expected = [x[::-1], np.roll(x, -1), np.roll(x, 1), np.full(count, 1), np.full(count, count)][way]
    assert np.array_equal(right, expected)
    assert not np.array_equal(wrong, expected)


# Waves


@pytest.mark.parametrize("wave", [32, 64])
def test_a_wave_reduces_by_shuffles(call: Callable[..., Any], wave: int) -> None:
    x, sums = RANDOM.integers(-9, 9, 1024).astype(np.float32), np.zeros(1024 // wave, np.float32)
    assert call("wave_sums", x, sums, 1024, wave=wave) == wave
    assert np.array_equal(sums, x.reshape(-1, wave).sum(1))


def test_lanes_that_a_branch_has_parted_shuffle_among_themselves(call: Callable[..., Any]) -> None:
    x = np.arange(65, dtype=np.float32)
    call("sum_32", x)
    assert set(x) == {sum(range(64))}


def shuffled(count: int, wave: int, width: int) -> list[list[int]]:
    """From which thread each one reads, for the four shuffles of `KERNELS`; a wave's last lanes may be missing."""

    def of(source: Callable[[int, int, int], int]) -> list[int]:
        read = []
        for thread in range(count):
            lane = thread % wave
            there = thread - lane + source(lane, lane // width * width, thread)
            read.append(there if there < count else thread)
        return read

    return [
        of(lambda lane, low, thread: low + (thread * 5 + 3) % width),
        of(lambda lane, low, thread: lane - 3 if lane - 3 >= low else lane),
        of(lambda lane, low, thread: lane + 3 if lane + 3 < low + width else lane),
        of(lambda lane, low, thread: lane ^ 5 if lane ^ 5 < low + width else lane),
    ]


@pytest.mark.parametrize("count", [50, 64, 200])
@pytest.mark.parametrize(("wave", "width"), [(64, 64), (64, 32), (64, 4), (32, 32), (32, 8)])
def test_shuffles(call: Callable[..., Any], wave: int, width: int, count: int) -> None:
    x, y = RANDOM.integers(0, 1000, count).astype(np.int32), RANDOM.random(count)
    out, wide = np.zeros((4, count), np.int32), np.zeros((4, count))
    call("shuffles", x, out, y, wide, count, width, wave=wave)
    sources = np.array(shuffled(count, wave, width))
    assert np.array_equal(out, x[sources])
    assert np.array_equal(wide, y[sources])


@pytest.mark.parametrize("count", [64, 100])
@pytest.mark.parametrize("wave", [32, 64])
def test_votes_of_a_wave(call: Callable[..., Any], wave: int, count: int) -> None:
    x = RANDOM.integers(0, 10, count).astype(np.int32)
    out = np.zeros((9, count), np.uint64)
    call("polls", x, out, count, wave=wave)
    for first in range(0, count, wave):
        lanes = x[first : first + wave].tolist()
        for lane, mine in enumerate(lanes):
            tile = lanes[lane // 16 * 16 : lane // 16 * 16 + 16]
            assert out[:, first + lane].astype(np.int64).tolist() == [
                mask(value > 5 for value in lanes),
                any(value > 8 for value in lanes),
                all(value > 0 for value in lanes),
                mask(True for _ in lanes),
                mask(value > 5 for value in tile),
                tile[2],
                lanes[0],
                lane,
                lanes[lane - 1] if lane % 16 else -1,
            ], mine


def mask(votes: Any) -> int:
    """The lanes that voted for it; as a signed number."""
    return int(np.array(sum(vote << lane for lane, vote in enumerate(votes)), np.uint64).astype(np.int64))


def test_lanes_that_returned_are_not_waited_for(call: Callable[..., Any]) -> None:
    x, lanes = np.full(90, -1, np.int32), np.zeros(90, np.uint64)
    call("thinned", x, lanes, 90)
    last = 89
    left = [thread for thread in range(90) if thread % 3]
    neighbours = {t: t + 1 if (t + 1) % 3 and (t + 1) % 64 and t != last else t for t in left}
    assert x.tolist() == [neighbours.get(thread, -1) for thread in range(90)]
    for thread in left:
        first = thread // 64 * 64
        assert int(lanes[thread]) == sum(1 << (lane - first) for lane in left if lane // 64 == thread // 64)


# Atomics


def test_atomics(call: Callable[..., Any]) -> None:
    x = RANDOM.integers(0, 10, 1234).astype(np.int32)
    bins, total = np.zeros(10, np.uint32), np.zeros(1, np.float32)
    extremes, ring, first = np.array([99, -99], np.int32), np.zeros(1, np.uint32), np.full(1, -1, np.int32)
    call("histogram", x, len(x), bins, total, extremes, ring, first)
    assert np.array_equal(bins, 2 * np.bincount(x, minlength=10))
    assert (total[0], ring[0], *extremes) == (617, 1234 % 7, x.min(), x.max())
    assert 0 <= first[0] < 1234


# Small floats


def bfloat16(x: np.ndarray) -> np.ndarray:
    """To the nearest bfloat16, ties to even, as float32."""
    bits = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)).astype(np.uint32) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(x), np.float32(np.nan), rounded.view(np.float32))


def float16(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float16).astype(np.float32)


SMALL = [0, -0.0, 1, -1, 1 / 3, 65504, 65520, 1e-7, 6e-8, -2.5e-5, 3e38, 1e-40, np.inf, -np.inf, np.nan, 1.00390625]


@pytest.mark.parametrize("rounded", [float16, bfloat16])
def test_arithmetic_of_small_floats(call: Callable[..., Any], rounded: Callable[[np.ndarray], np.ndarray]) -> None:
    pairs = np.array([(a, b) for a in SMALL for b in SMALL] + [*RANDOM.normal(0, 4, (500, 2))], np.float32)
    x, y = np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
    halves, bfloats = np.zeros((15, len(x)), np.float32), np.zeros((15, len(x)), np.float32)
    call("small", x, y, halves, bfloats, len(x))
    with np.errstate(all="ignore"):
        a, b = rounded(x), rounded(y)
        fused = a.astype(np.float64) * b + a
        expected = [a, a + b, a - b, a * b, a / b, -a, a + b, a * b, fused, abs(a)]
        expected += [np.fmax(a, b), np.fmin(a, b), np.sqrt(abs(a)), np.exp(b), a < b]
        for name, got, exact in zip(range(15), halves if rounded is float16 else bfloats, expected, strict=True):
            wanted = rounded(np.asarray(exact, np.float32 if rounded is bfloat16 else np.float64))
            # The two exponential functions may differ in a last bit that decides how theirs is rounded.
            close = 2**-7 if name == 13 else 0
            assert np.allclose(got, wanted, rtol=close, atol=0, equal_nan=True), name


def test_roundings_to_small_floats(call: Callable[..., Any]) -> None:
    x = np.concatenate([np.array(SMALL, np.float32), floats(500) * 100])
    x = x[~np.isnan(x)]
    out = np.zeros((6, len(x)), np.uint16)
    call("small_bits", x, out, len(x))
    with np.errstate(all="ignore"):
        nearest = x.astype(np.float16)
        down = np.where(nearest.astype(np.float32) > x, np.nextafter(nearest, np.float16(-np.inf)), nearest)
        up = np.where(nearest.astype(np.float32) < x, np.nextafter(nearest, np.float16(np.inf)), nearest)
    expected = [nearest, down, up, np.where(x < 0, up, down)]
    assert np.array_equal(out[:4], np.array(expected).view(np.uint16))
    assert np.array_equal(out[4], bfloat16(x).view(np.uint32) >> 16)
    assert np.array_equal(out[5], out[4])


def test_a_nan_whose_payload_is_cut_off_stays_one(call: Callable[..., Any]) -> None:
    x, out = np.array([0x7F800001, 0xFF800001], np.uint32), np.zeros((6, 2), np.uint16)
    call("small_bits", x, out, 2)
    assert np.all((out[:4] & 0x7FFF) > 0x7C00)
    assert np.all((out[4:] & 0x7FFF) > 0x7F80)


@pytest.mark.parametrize("name", ["pairs", "vectors"])
def test_vector_types(call: Callable[..., Any], name: str) -> None:
    assert call(name) == 1


# Device functions


def signed(value: int, bits: int) -> int:
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def integer_results(a: int, b: int) -> list[int]:
    """What the integer functions of `KERNELS` make of two words."""
    word_a, word_b = a % 2**32, b % 2**32
    pair = word_b << 32 | word_a
    return [
        word_a.bit_count(),
        32 - word_a.bit_length(),
        (word_a & -word_a).bit_length(),
        int(f"{word_a:032b}"[::-1], 2),
        a * b >> 32,
        word_a * word_b >> 32,
        signed(signed(a, 24) * signed(b, 24), 32),
        (abs(a - b) + 1) % 2**32,
        (a + b) >> 1,
        (a + b + 1) >> 1,
        sum((pair >> 8 * (2 * i + 1) & 0xFF) << 8 * i for i in range(4)),
        (pair << 9 >> 32) % 2**32,
        (pair >> 9) % 2**32,
        min(a, b),
        max(a, b),
        int(np.float32(a).view(np.int32)),
        a * b,
    ]


def test_integer_functions(call: Callable[..., Any]) -> None:
    edges = [0, 1, -1, 2**31 - 1, -(2**31), 255, 0x7FFFFF, 0x800000]
    pairs = [(a, b) for a in edges for b in edges] + RANDOM.integers(-(2**31), 2**31, (100, 2)).tolist()
    x, y = (np.array([pair[i] for pair in pairs], np.int32) for i in range(2))
    out = np.zeros((17, len(pairs)), np.int64)
    call("integers", x, y, out, len(pairs))
    for (a, b), got in zip(pairs, out.T.tolist(), strict=True):
        assert got == integer_results(a, b), (a, b)


def test_real_functions(call: Callable[..., Any]) -> None:
    special = pytest.importorskip("scipy.special")
    x = np.concatenate([np.arange(0.25, 30, 0.25), RANDOM.uniform(0.01, 40, 50)])
    out = np.zeros((14, len(x)))
    call("reals", x, out, len(x))
    expected = [1 / np.sqrt(x), 1 / np.cbrt(x), np.sin(np.pi * x), np.cos(np.pi * x), special.ndtr(x)]
    expected += [special.erfcx(x), 10 ** (x / 8), np.exp((x / 8).astype(np.float32)), np.clip(x, 0, 1), np.rint(x)]
    expected += [np.floor(x.astype(np.float32)), np.fmax(x, 2), x, np.clip(x, 1, 3)]
    for number, (got, wanted) in enumerate(zip(out, expected, strict=True)):
        assert np.allclose(got, wanted, rtol=2e-7 if number > 6 else 1e-12, atol=1e-13), number
    quarters = x[:120] % 1
    assert np.all(out[2][:119][quarters[:119] == 0] == 0)
    assert np.all(out[3][:119][quarters[:119] == 0.5] == 0)


def test_conversions_saturate(call: Callable[..., Any]) -> None:
    x = np.array([1.5, -1.5, 3e9, -3e9, 1e19, -1e19, np.inf, -np.inf, np.nan], np.float32)
    out = np.zeros((3, len(x)), np.int64)
    call("converted", x, out, len(x))
    least, most = -(2**31), 2**31 - 1
    assert out[0].tolist() == [1, -1, most, least, most, least, most, least, 0]
    assert out[1].tolist() == [2, 0, 3_000_000_000, 0, 2**32 - 1, 0, 2**32 - 1, 0, 0]
    far = [2**63 - 1, -(2**63)]
    assert out[2].tolist() == [1, -1, 3_000_000_000, -3_000_000_000, *far, *far, 0]


# The runtime


def test_symbols(call: Callable[..., Any]) -> None:
    values, out = floats(4), floats(4)
    assert call("symbols", values, out) == 1
    assert np.array_equal(out, values + 2)


def test_calls_of_the_runtime(call: Callable[..., Any]) -> None:
    fresh, filled = np.zeros(16, np.uint8), np.zeros(5, np.int32)
    assert call("runtime", fresh, filled) == 1
    assert np.all(fresh == 0xCD)
    assert np.all(filled == 0x01020304)


@pytest.mark.parametrize(
    ("grid", "block", "bytes_", "error"),
    [
        ((1, 1, 1), (1024, 1, 1), 65536, "hipSuccess"),
        ((0, 1, 1), (64, 1, 1), 0, "hipErrorInvalidConfiguration"),
        ((1, 0, 1), (64, 1, 1), 0, "hipErrorInvalidConfiguration"),
        ((1, 1, 1), (0, 1, 1), 0, "hipErrorInvalidConfiguration"),
        ((1, 1, 1), (1025, 1, 1), 0, "hipErrorInvalidConfiguration"),
        ((1, 1, 1), (32, 33, 1), 0, "hipErrorInvalidConfiguration"),
        ((1, 1, 1), (65536, 65536, 1), 0, "hipErrorInvalidConfiguration"),
        ((1, 1, 70000), (1, 1, 1), 0, "hipErrorInvalidConfiguration"),
        ((1, 1, 1), (64, 1, 1), 65537, "hipErrorInvalidValue"),
    ],
)
def test_a_launch_that_the_hardware_refuses_runs_nothing(
    library: Callable[[int], ctypes.CDLL], grid: tuple[int, ...], block: tuple[int, ...], bytes_: int, error: str
) -> None:
    launch, ran = library(64)["launch_error"], np.zeros(1024, np.int32)
    launch.restype = ctypes.c_char_p
    assert launch(*map(passed, (np.array(grid, np.uint32), np.array(block, np.uint32), bytes_, ran))).decode() == error
    assert ran.any() == (error == "hipSuccess")


# Faults

FAULTS = {
    "part of a wave returns before a barrier": (
        0,
        "80 threads wait at a barrier, 0 in a wave operation, 48 have returned: part of a wave is missing",
    ),
    "a barrier in a part of a wave": (
        1,
        "32 threads wait at a barrier, 0 in a wave operation, 32 have returned: part of",
    ),
    "a shuffle and a ballot": (2, "threads of one wave are in different wave operations, __"),
    "two shuffles": (5, "threads of one wave are in different wave operations, __shfl in line"),
    "more stack than there is": (3, "a thread needs more stack than it has"),
    "a barrier on the host": (4, "the host called what only a kernel may call"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_ends_the_program_with_its_place(library: Callable[[int], ctypes.CDLL], fault: str) -> None:
    which, words = FAULTS[fault]
    code = f"import ctypes; ctypes.CDLL({library(64)._name!r}).fault({which})"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == -6
    assert re.fullmatch(r"hip emulator: block \(\d,0,0\): \d+ threads [^\n]*\n", done.stderr)
    assert words in done.stderr


# What a library becomes

SCALE = r"""
#include <cstdint>
#include <hip/hip_bf16.h>
#include <hip/hip_bfloat16.h>
#include <hip/hip_cooperative_groups.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
__device__ float factor = 2;
template <class T> __global__ void scale_all(T *x, int64_t n) {
  extern __shared__ float shared[];
  int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  shared[threadIdx.x] = i < n ? (float)x[i] : 0;
  __syncthreads();
  assert(shared[threadIdx.x] == shared[threadIdx.x]);
  if (i < n) x[i] = __half2float(__float2half(sinpif(shared[threadIdx.x] * factor)));
  if (__any(i > n)) printf("%d\n", __popc((int)atomicAdd(&factor, 0)));
}
extern "C" void scale(float *x, int64_t n) {
  float *y;
  if (hipMalloc(&y, n * 4) != hipSuccess) return;
  (void)hipMemcpy(y, x, n * 4, hipMemcpyHostToDevice);
  scale_all<<<(n + 255) / 256, 256, 1024>>>(y, n);
  (void)hipMemcpy(x, y, n * 4, hipMemcpyDeviceToHost), (void)hipFree(y);
  if (hipError_t error = hipGetLastError()) fprintf(stderr, "%s\n", hipGetErrorString(error));
}
"""
SHOWN = "VERSION { { global: scale; local: *; }; }\nPROVIDE_HIDDEN(__dso_handle = ADDR(.dynamic));\n"


@needs_compiler
def test_a_library_passes_the_gates(tmp_path: Path) -> None:
    (tmp_path / "hip").symlink_to(HEADERS)
    (tmp_path / "scale.cpp").write_text(as_cpp(SCALE))
    (tmp_path / "shown.ld").write_text(SHOWN)
    chain = toolchains()["cpp"]
    compile_, link = ("-I.", "-c", "scale.cpp"), ("scale.o", "-o", "scale.so", "-nostartfiles", "shown.ld")
    for step in (compile_, link):
        done = subprocess.run(
            [chain.compiler, *chain.flags, *step, *chain.libraries], cwd=tmp_path, capture_output=True, text=True
        )
        assert (done.returncode, done.stderr) == (0, "")
    library = binary.check(tmp_path / "scale.so", "scale", Language.CPP)
    binary.check_object(tmp_path / "scale.so", "scale")
    assert not {tag for tag in library.tags if "INIT" in tag or "FINI" in tag}
    assert {"malloc", "abort"} <= library.wanted


@needs_compiler
def test_what_hip_refuses_is_refused(tmp_path: Path) -> None:
    source = """#include <hip/hip_runtime.h>
__global__ void k(short *x, float *y) {
  atomicAdd(x, 1);
  atomicAnd(y, 1);
  int z = __shfl_sync(0xffffffff, 1, 0);
  threadIdx.x = z;
}
"""
    (tmp_path / "hip").symlink_to(HEADERS)
    (tmp_path / "k.cpp").write_text(as_cpp(source))
    argv = ["g++", *FLAGS, "-fsyntax-only", "k.cpp"]
    said = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True).stderr
    assert {int(line) for line in re.findall(r"^k\.cpp:(\d+):\d+: error", said, re.MULTILINE)} >= {3, 4, 6}
    assert "the mask of a wave's lanes is a 64-bit integer" in said


# What is rewritten

LAUNCHES = {
    "plain": ("k<<<g, b>>>(x);", "kc::launcher(KC_KERNEL(k), g, b)(x);"),
    "four parts": ("k<<<g, b, n >> 2, s>>>(x, y)", "kc::launcher(KC_KERNEL(k), g, b, n >> 2, s)(x, y)"),
    "calls": ("k<<<dim3(a, b), f(c, {1, 2}[d])>>>()", "kc::launcher(KC_KERNEL(k), dim3(a, b), f(c, {1, 2}[d]))()"),
    "comparisons": ("k<<<n < 9 ? 1 : 2, b>>>(x)", "kc::launcher(KC_KERNEL(k), n < 9 ? 1 : 2, b)(x)"),
    "casts": ("k<<<(int)g, size_t(b) >> 1>>>(x)", "kc::launcher(KC_KERNEL(k), (int)g, size_t(b) >> 1)(x)"),
    "template": ("k<float, 4><<<g, b>>>(x)", "kc::launcher(KC_KERNEL(k<float, 4>), g, b)(x)"),
    "templates": ("k<A<B<int>>><<<g, b>>>(x)", "kc::launcher(KC_KERNEL(k<A<B<int>>>), g, b)(x)"),
    "shift": ("k<(1 << 3), (a > b)><<<g, b>>>(x)", "kc::launcher(KC_KERNEL(k<(1 << 3), (a > b)>), g, b)(x)"),
    "arguments with templates": (
        "k<<<f<g<h<int>>>(x), 256>>>(y)",
        "kc::launcher(KC_KERNEL(k), f<g<h<int>>>(x), 256)(y)",
    ),
    "namespace": ("return ns::k<<<g, b>>>(x)", "return kc::launcher(KC_KERNEL(ns::k), g, b)(x)"),
    "global": ("if (a < b) ::k<<<g, b>>>(x)", "if (a < b) kc::launcher(KC_KERNEL(::k), g, b)(x)"),
    "member": ("A<T>::template k<4><<<g, b>>>(x)", "kc::launcher(KC_KERNEL(A<T>::template k<4>), g, b)(x)"),
    "object": ("a->b.k<<<g, b>>>(x)", "kc::launcher(KC_KERNEL(a->b.k), g, b)(x)"),
    "array": ("ks[i]<<<g, b>>>(x)", "kc::launcher(KC_KERNEL(ks[i]), g, b)(x)"),
    "pointer": ("if (x) (*k)<<<g, b>>>(x)", "if (x) kc::launcher(KC_KERNEL((*k)), g, b)(x)"),
    "returned": ("pick<T>(n)<<<g, b>>>(x)", "kc::launcher(KC_KERNEL(pick<T>(n)), g, b)(x)"),
    "statement": ("for (;;) k<<<g, b>>>(x)", "for (;;) kc::launcher(KC_KERNEL(k), g, b)(x)"),
    "joined": ("k_##T<<<g, b>>>(x)", "kc::launcher(KC_KERNEL(k_##T), g, b)(x)"),
    "two": (
        "a<<<1, 2>>>(b), c<<<3, 4>>>(d)",
        "kc::launcher(KC_KERNEL(a), 1, 2)(b), kc::launcher(KC_KERNEL(c), 3, 4)(d)",
    ),
    "lines": ("k<A,\n  B>\n  <<<g,\n b>>>\n (x)", "kc::launcher(KC_KERNEL(k<A,\n  B>\n  ), g,\n b)\n (x)"),
    "macro": ("#define L \\\n k<T> \\\n <<<g, b>>> \\\n (x)", None),
    "comment": ("k /* < */ <<<g /* , >>>( */, b>>> // (\n (x)", None),
    "literals": ("k<'>'><<<f(\")>>>(\"), '('>>>(R\"(>>>()\")", None),
}


@pytest.mark.parametrize("name", LAUNCHES)
def test_a_launch_is_rewritten(name: str) -> None:
    source, expected = LAUNCHES[name]
    if expected is None:
        expected = {
            "macro": "#define L \\\n kc::launcher(KC_KERNEL(k<T> \\\n ), g, b) \\\n (x)",
            "comment": "kc::launcher(KC_KERNEL(k /* < */ ), g /* , >>>( */, b) // (\n (x)",
            "literals": "kc::launcher(KC_KERNEL(k<'>'>), f(\")>>>(\"), '(')(R\"(>>>()\")",
        }[name]
    assert as_cpp(source) == expected


SHARED = {
    "plain": ("extern __shared__ float s[];", "float *const s = (float *)kc::dynamic_memory;"),
    "words": (
        "extern __shared__ unsigned char s [ ] ;",
        "unsigned char *const s = (unsigned char *)kc::dynamic_memory;",
    ),
    "align": ("extern __shared__ __align__(16) T s[];", "T *const s = (T *)kc::dynamic_memory;"),
    "alignas": ("extern __shared__ alignas(sizeof(T)) T s[];", "T *const s = (T *)kc::dynamic_memory;"),
    "attribute": (
        "extern __attribute__((aligned(16))) __shared__ volatile float4 s[];",
        "volatile float4 *const s = (volatile float4 *)kc::dynamic_memory;",
    ),
    "bounds": (
        "extern __shared__ float s[][N + 1];",
        "float (*const s)[N + 1] = (float (*)[N + 1])kc::dynamic_memory;",
    ),
    "lines": ("extern __shared__\n  float\n s[]; int x;", "float *const s = (float *)kc::dynamic_memory \n \n; int x;"),
    "macro": (
        "#define S(T) extern __shared__ \\\n T s[]; T x;",
        "#define S(T) T *const s = (T *)kc::dynamic_memory \\\n; T x;",
    ),
    "static": ("static __shared__ float s[4];", "       __shared__ float s[4];"),
    "alignment": ("__shared__ alignas(16) float s[4];", "alignas(16) __shared__ float s[4];"),
}


@pytest.mark.parametrize("name", SHARED)
def test_dynamic_shared_memory_is_rewritten(name: str) -> None:
    source, expected = SHARED[name]
    assert as_cpp(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        "// k<<<g, b>>>(x)",
        "/* k<<<g, b>>>(x) extern __shared__ float s[]; */",
        'auto s = "k<<<g, b>>>(x)"; auto r = R"(extern __shared__ float s[];)"; char c = \'<<<\';',
        "k<<<g, b>>>;",
        "k<<<g, b; >>>(x)",
        "k<<<(g, b>>>(x)",
        "1 <<< 2 >>> (3)",
        "x <<= 3; y >>= 2; a < b > c; std::cout << x;",
        "extern __shared__ float a[], b[];",
        "extern __shared__ float a[4];",
        "extern float a[]; __shared__ float b[4];",
        "extern __shared__ s[];",
        "extern __shared__ float s[] = {1};",
    ],
)
def test_what_is_not_understood_stays(source: str) -> None:
    assert as_cpp(source) == source


PIECES = [
    *(
        "<<<",
        ">>>",
        "k",
        "(",
        ")",
        ",",
        "\n",
        "\\\n",
        "\r\n",
        " ",
        "extern ",
        "static ",
        "__shared__ ",
        "float ",
        "s[]",
        ";",
    ),
    *(
        "<",
        ">",
        "::",
        '"',
        "'",
        "//",
        "/*",
        "*/",
        "{",
        "}",
        'R"(',
        "template ",
        "if",
        "##",
        "1'0",
        "=",
        "alignas(16)",
        "[",
        "]",
    ),
]


@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join) | st.text(max_size=60))
def test_lines_stay_where_they_are(source: str) -> None:
    rewritten = as_cpp(source)
    assert rewritten.count("\n") == source.count("\n")
    if "<<<" not in source and "__shared__" not in source:
        assert rewritten == source
    assert as_cpp(f"/*{source.replace('*/', '')}*/") == f"/*{source.replace('*/', '')}*/"


@given(
    name=st.sampled_from(["k", "ns::k", "k<1, T>", "A<B<C>>::template k<(2 > 1)>", "ks[f(1)]"]),
    shape=st.lists(st.sampled_from(["n", "dim3(a, b)", "(n + 1) / 2", "n >> 3", "a < b ? 1 : 2", "f<T>(x)", "{1, 2}"]))
    .filter(bool)
    .map(", ".join),
    before=st.sampled_from(["", "return ", "if (a < b) ", "{ x = a << b; ", "else\n", "#if N < 3\n", "CHECK("]),
    gap=st.sampled_from(["", " ", "\n    ", " \\\n ", "/* < */"]),
)
def test_any_launch_is_found(name: str, shape: str, before: str, gap: str) -> None:
    rewritten = as_cpp(f"{before}{name}{gap}<<<{shape}>>>{gap}(x, y);")
    assert rewritten == f"{before}kc::launcher(KC_KERNEL({name}{gap}), {shape}){gap}(x, y);"


@pytest.mark.parametrize(
    "piece",
    [
        *(
            "<<<",
            ">>>",
            "k<",
            "k>",
            "k<<<",
            "k<<<(",
            "k<a<b<c>>>",
            "k<<<>>>(",
            "(",
            "[",
            "{",
            "};",
            "::",
            "\\\n",
            "'",
            '"',
        ),
        *("extern ", "extern __shared__ ", "extern __shared__ T a[] ", "extern __shared__ alignas((", "static "),
        *(f"extern __shared__{' ' * 400}a[", f"extern __shared__ {'a ' * 250};", f"extern __shared__ {'a' * 500}[;"),
    ],
    ids=lambda piece: " ".join(piece[:30].split()),
)
def test_a_hostile_source_takes_no_longer_than_another(piece: str) -> None:
    source = "k<<<1, 2>>>(x); __shared__ " + piece * ((2**18 if piece == "<<<" else 2**16) // len(piece))
    started = time.process_time()
    rewritten = as_cpp(source)
    assert time.process_time() - started < 3
    assert rewritten.startswith("kc::launcher(")
