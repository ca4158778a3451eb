/* The judge's half on a GPU: its buffers, values, comparison and cache flush, as helper.c has them for the CPU. Never
   loaded by a runner. What returns int returns 0, or an error's number, which kc_gpu_why puts into words. */
#include <hip/hip_runtime.h>
#if __has_include(<hip/kc_vmm.h>)
#include <hip/kc_vmm.h>
#endif
#include "values.h"
#include <cfloat>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <time.h>

#define TRY(expression)                                          \
  do {                                                           \
    if (hipError_t error = (expression)) return (int)error;      \
  } while (0)
#define EXPORTED extern "C" __attribute__((visibility("default")))

constexpr int THREADS = 256, WORDS = 4;
constexpr int64_t MOST_BLOCKS = 1 << 16;

/* Blocks for `count` threads, each of which goes on by stride() until all is done. */
static int blocks(int64_t count) {
  int64_t wanted = (count + THREADS - 1) / THREADS;
  return (int)(wanted < 1 ? 1 : wanted > MOST_BLOCKS ? MOST_BLOCKS : wanted);
}
__device__ static int64_t place() { return (int64_t)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ static int64_t stride() { return (int64_t)gridDim.x * blockDim.x; }

/* Two words on the device that kernels leave their findings in. */
static unsigned long long *found;
static void *flushed;
static size_t flushed_bytes;

struct kc_gpu_facts {
  char name[256];
  int64_t memory_bytes, cache_bytes, multiprocessors, wave;
};

EXPORTED const char *kc_gpu_why(int error) { return hipGetErrorString((hipError_t)error); }

EXPORTED int kc_gpu_open(int ordinal, int64_t flush_bytes, struct kc_gpu_facts *facts) {
  TRY(hipSetDevice(ordinal));
  TRY(hipFree(nullptr));
  hipDeviceProp_t properties;
  TRY(hipGetDeviceProperties(&properties, ordinal));
  strncpy(facts->name, properties.name, sizeof facts->name - 1);
  facts->memory_bytes = (int64_t)properties.totalGlobalMem;
  facts->cache_bytes = properties.l2CacheSize;
  facts->multiprocessors = properties.multiProcessorCount;
  facts->wave = properties.warpSize;
  TRY(hipMalloc((void **)&found, 2 * sizeof *found));
  flushed_bytes = (size_t)flush_bytes;
  return (int)hipMalloc(&flushed, flushed_bytes);
}

/* Buffers that a runner borrows: memory, a descriptor of it to hand over, and where it lies here. `bytes` is rounded up
   to what the device can map. */
EXPORTED int kc_gpu_create(int64_t *bytes, void **at, int *fd) {
  hipMemAllocationProp wanted = {};
  wanted.type = hipMemAllocationTypePinned;
  wanted.requestedHandleTypes = hipMemHandleTypePosixFileDescriptor;
  wanted.location.type = hipMemLocationTypeDevice;
  TRY(hipGetDevice(&wanted.location.id));
  size_t grain;
  TRY(hipMemGetAllocationGranularity(&grain, &wanted, hipMemAllocationGranularityMinimum));
  size_t size = ((size_t)*bytes + grain - 1) / grain * grain;
  hipMemGenericAllocationHandle_t memory;
  TRY(hipMemCreate(&memory, size, &wanted, 0));
  hipMemAccessDesc access = {};
  access.location = wanted.location;
  access.flags = hipMemAccessFlagsProtReadWrite;
  TRY(hipMemExportToShareableHandle(fd, memory, hipMemHandleTypePosixFileDescriptor, 0));
  TRY(hipMemAddressReserve(at, size, 0, nullptr, 0));
  TRY(hipMemMap(*at, size, 0, memory, 0));
  TRY(hipMemSetAccess(*at, size, &access, 1));
  *bytes = (int64_t)size;
  return (int)hipMemRelease(memory); /* what is mapped stays */
}

EXPORTED int kc_gpu_destroy(void *at, int64_t bytes) {
  TRY(hipMemUnmap(at, (size_t)bytes));
  return (int)hipMemAddressFree(at, (size_t)bytes);
}

/* Memory that no runner sees: the oracle's. */
EXPORTED int kc_gpu_allocate(int64_t bytes, void **at) { return (int)hipMalloc(at, (size_t)bytes); }
EXPORTED int kc_gpu_free(void *at) { return (int)hipFree(at); }

EXPORTED int kc_gpu_upload(void *to, const void *from, int64_t bytes) {
  return (int)hipMemcpy(to, from, (size_t)bytes, hipMemcpyHostToDevice);
}
EXPORTED int kc_gpu_download(void *to, const void *from, int64_t bytes) {
  return (int)hipMemcpy(to, from, (size_t)bytes, hipMemcpyDeviceToHost);
}

EXPORTED int kc_gpu_copy(void *to, const void *from, int64_t bytes) {
  return (int)hipMemcpy(to, from, (size_t)bytes, hipMemcpyDeviceToDevice);
}
EXPORTED int kc_gpu_set(void *at, int byte, int64_t bytes) { return (int)hipMemset(at, byte, (size_t)bytes); }

/* Wait until nothing of ours runs on the device; an error of any launch before shows here. */
EXPORTED int kc_gpu_wait() {
  TRY(hipGetLastError());
  return (int)hipDeviceSynchronize();
}

/* Values */

enum family { UNIFORM, POSITIVE, NORMAL, WIDE, NEAR_CONSTANT, FEW, SPIKED, BELOW, SKEWED, FAMILIES };
static const char *const FAMILY[FAMILIES] = {"uniform", "positive", "normal", "wide", "near_constant",
                                             "few",     "spiked",   "below",  "skewed"};

__device__ static double drawn(int family, uint64_t w) {
  switch (family) {
    case UNIFORM: return uniform(w);
    case POSITIVE: return positive(w);
    case NORMAL: return normal(w);
    case WIDE: return wide(w);
    case NEAR_CONSTANT: return near_constant(w);
    case FEW: return few(w);
    default: return spiked(w);
  }
}

/* 16-bit floats. Every value is exact as a float: on its way to them it is rounded once. */
struct float16 {
  uint16_t bits;
  __device__ explicit float16(double x) : bits(to_float16((float)x)) {}
  __device__ explicit operator double() const { return from_float16(bits); }
};
struct bfloat16 {
  uint16_t bits;
  __device__ explicit bfloat16(double x) : bits(to_bfloat16((float)x)) {}
  __device__ explicit operator double() const { return from_bfloat16(bits); }
};

/* Do something with a null pointer to the float type of that name, and its largest number; -1 when there is none. */
template <class Act> static int with_floats(const char *dtype, Act act) {
  if (!strcmp(dtype, "float16")) act((float16 *)nullptr, 65504.0);
  else if (!strcmp(dtype, "bfloat16")) act((bfloat16 *)nullptr, 0x1.fep127);
  else if (!strcmp(dtype, "float32")) act((float *)nullptr, (double)FLT_MAX);
  else if (!strcmp(dtype, "float64")) act((double *)nullptr, DBL_MAX);
  else return -1;
  return 0;
}

template <class T> __global__ void fill_floats(T *out, int64_t count, int family, uint64_t k0, uint64_t k1) {
  for (int64_t block = place(); block * WORDS < count; block += stride()) {
    uint64_t word[WORDS];
    philox(word, (uint64_t)block, k0, k1);
    for (int j = 0; j < WORDS && block * WORDS + j < count; j++) out[block * WORDS + j] = (T)drawn(family, word[j]);
  }
}

template <class T>
__global__ void fill_integers(T *out, int64_t count, int family, uint64_t bound, uint64_t k0, uint64_t k1) {
  for (int64_t block = place(); block * WORDS < count; block += stride()) {
    uint64_t word[WORDS];
    philox(word, (uint64_t)block, k0, k1);
    for (int j = 0; j < WORDS && block * WORDS + j < count; j++)
      out[block * WORDS + j] = (T)(family == BELOW ? below(word[j], bound) : skewed(word[j], bound));
  }
}

/* As kc_fill of helper.c: the same values; -1 for an unknown family or dtype. */
EXPORTED int kc_gpu_fill(void *out, int64_t count, const char *dtype, const char *name, uint64_t bound, uint64_t k0,
                         uint64_t k1) {
  int family = 0;
  while (family < FAMILIES && strcmp(name, FAMILY[family])) family++;
  const bool is = family < FAMILIES, floats = family < BELOW;
  const int grid = blocks((count + WORDS - 1) / WORDS);
  if (is && floats) {
    int unknown = with_floats(dtype, [&](auto *type, double) {
      fill_floats<<<grid, THREADS>>>((decltype(type))out, count, family, k0, k1);
    });
    return unknown ? unknown : kc_gpu_wait();
  }
  if (is && !strcmp(dtype, "int32"))
    fill_integers<int32_t><<<grid, THREADS>>>((int32_t *)out, count, family, bound, k0, k1);
  else if (is && !strcmp(dtype, "int64"))
    fill_integers<int64_t><<<grid, THREADS>>>((int64_t *)out, count, family, bound, k0, k1);
  else
    return -1;
  return kc_gpu_wait();
}

template <class T> __global__ void widen(const T *in, double *out, int64_t count) {
  for (int64_t i = place(); i < count; i += stride()) out[i] = (double)in[i];
}

/* Floats into float64; -1 for another dtype. */
EXPORTED int kc_gpu_widen(const void *in, const char *dtype, double *out, int64_t count) {
  int unknown = with_floats(dtype, [&](auto *type, double) {
    widen<<<blocks(count), THREADS>>>((decltype(type))in, out, count);
  });
  return unknown ? unknown : kc_gpu_wait();
}

/* Poison: kc_poison of helper.c, a word a thread; bytes one by one where a word would lie across a border. */

__global__ void poison(unsigned char *out, int64_t bytes, uint64_t key) {
  for (int64_t at = 8 * place(); at < bytes; at += 8 * stride()) {
    const uint64_t word = scramble(key + (uint64_t)at);
    if ((uintptr_t)(out + at) % 8 == 0 && at + 8 <= bytes) *(uint64_t *)(out + at) = word;
    else
      for (int j = 0; j < 8 && at + j < bytes; j++) out[at + j] = (unsigned char)(word >> 8 * j);
  }
}

__global__ void poison_differs(const unsigned char *in, int64_t bytes, uint64_t key, unsigned long long *first) {
  for (int64_t at = place(); at < bytes; at += stride()) {
    const uint64_t word = scramble(key + (uint64_t)(at & ~7LL));
    if (in[at] != (unsigned char)(word >> 8 * (at & 7))) atomicMin(first, (unsigned long long)at);
  }
}

EXPORTED int kc_gpu_poison(void *out, int64_t bytes, uint64_t key) {
  poison<<<blocks((bytes + 7) / 8), THREADS>>>((unsigned char *)out, bytes, key);
  return kc_gpu_wait();
}

/* *first is the offset of the first byte that differs from what kc_gpu_poison wrote there, or -1. */
EXPORTED int kc_gpu_poison_check(const void *in, int64_t bytes, uint64_t key, int64_t *first) {
  TRY(hipMemset(found, 0xff, sizeof *found));
  if (bytes > 0) poison_differs<<<blocks(bytes), THREADS>>>((const unsigned char *)in, bytes, key, found);
  TRY(hipGetLastError());
  return kc_gpu_download(first, found, sizeof *first);
}

/* Comparison */

__device__ static void note(unsigned long long *found, int64_t at) {
  atomicAdd(&found[0], 1ULL);
  atomicMin(&found[1], (unsigned long long)at);
}

template <class T>
__global__ void differ(const T *got, const double *expected, const double *magnitude, int64_t count, double factor,
                       double floor_, double limit, unsigned long long *found) {
  for (int64_t i = place(); i < count; i += stride())
    if (!element_ok((double)got[i], expected[i], factor * fabs(magnitude[i]) + floor_, limit)) note(found, i);
}

template <class T>
__global__ void differ_exactly(const T *got, const T *expected, int64_t count, unsigned long long *found) {
  for (int64_t i = place(); i < count; i += stride())
    if (got[i] != expected[i]) note(found, i);
}

static int begin_search() {
  const unsigned long long none[2] = {0, ~0ULL};
  return kc_gpu_upload(found, none, sizeof none);
}

static int end_search(int64_t *count, int64_t *first) {
  unsigned long long said[2];
  TRY(hipGetLastError());
  if (int error = kc_gpu_download(said, found, sizeof said)) return error;
  *count = (int64_t)said[0];
  *first = (int64_t)said[1];
  return 0;
}

/* Elements that are not within factor * |magnitude| + floor of the oracle; -1 for a dtype that is not of floats. */
EXPORTED int kc_gpu_compare(const void *got, const char *dtype, const double *expected, const double *magnitude,
                            int64_t count, double factor, double floor_, int64_t *bad, int64_t *first) {
  if (int error = begin_search()) return error;
  int unknown = with_floats(dtype, [&](auto *type, double largest) {
    differ<<<blocks(count), THREADS>>>((decltype(type))got, expected, magnitude, count, factor, floor_, largest, found);
  });
  return unknown ? unknown : end_search(bad, first);
}

/* Elements of 4 or 8 bytes that differ; -1 for another width. */
EXPORTED int kc_gpu_compare_exact(const void *got, const void *expected, int64_t count, int64_t width, int64_t *bad,
                                  int64_t *first) {
  if (int error = begin_search()) return error;
  if (width == 4)
    differ_exactly<<<blocks(count), THREADS>>>((const uint32_t *)got, (const uint32_t *)expected, count, found);
  else if (width == 8)
    differ_exactly<<<blocks(count), THREADS>>>((const uint64_t *)got, (const uint64_t *)expected, count, found);
  else
    return -1;
  return end_search(bad, first);
}

/* A number that changes, but by a chance of 2^-64, with every byte. A block adds once: all add to the same word. */
__global__ void digest(const unsigned char *in, int64_t bytes, unsigned long long *sum) {
  __shared__ unsigned long long sums[THREADS];
  unsigned long long mine = 0;
  for (int64_t at = 8 * place(); at < bytes; at += 8 * stride()) {
    uint64_t word = 0;
    if (at + 8 <= bytes) word = *(const uint64_t *)(in + at);
    else
      for (int j = 0; at + j < bytes; j++) word |= (uint64_t)in[at + j] << 8 * j;
    mine += scramble(word ^ scramble((uint64_t)at));
  }
  sums[threadIdx.x] = mine;
  for (int half = THREADS / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x == 0) atomicAdd(sum, sums[0]);
}

/* `in` lies at a multiple of 8. */
EXPORTED int kc_gpu_digest(const void *in, int64_t bytes, uint64_t *sum) {
  TRY(hipMemset(found, 0, sizeof *found));
  digest<<<blocks((bytes + 7) / 8), THREADS>>>((const unsigned char *)in, bytes, found);
  TRY(hipGetLastError());
  return kc_gpu_download(sum, found, sizeof *sum);
}

/* The device's state between calls */

/* Write more than any cache of it holds: the next call starts cold. */
EXPORTED int kc_gpu_flush(int value) {
  TRY(hipMemsetAsync(flushed, value & 0xff, flushed_bytes, 0));
  return kc_gpu_wait();
}

/* Bytes per ns, read and written, of the fastest of several copies within the area that flushes caches. */
EXPORTED int kc_gpu_copy_rate(double *rate) {
  const size_t half = flushed_bytes / 2;
  hipEvent_t before, after;
  TRY(hipEventCreate(&before));
  TRY(hipEventCreate(&after));
  float least = FLT_MAX;
  for (int turn = 0; turn < 10; turn++) {
    float milliseconds;
    TRY(hipEventRecord(before, 0));
    TRY(hipMemcpyAsync((char *)flushed + half, flushed, half, hipMemcpyDeviceToDevice, 0));
    TRY(hipEventRecord(after, 0));
    if (int error = kc_gpu_wait()) return error;
    TRY(hipEventElapsedTime(&milliseconds, before, after));
    if (milliseconds < least) least = milliseconds;
  }
  *rate = 2.0 * (double)half / (least * 1e6);
  TRY(hipEventDestroy(before));
  return (int)hipEventDestroy(after);
}

__global__ void nothing() {}

/* Wait until the device is ours, which another process's work had. */
EXPORTED int kc_gpu_take_back() {
  nothing<<<1, 1>>>();
  return kc_gpu_wait();
}

/* How long (ns) a kernel that does nothing takes from here, once the device is ours: where somebody else's work runs
   meanwhile, the device takes turns, and this takes a turn more. */
EXPORTED int kc_gpu_round_trip(int64_t *ns) {
  timespec before, after;
  for (int turn = 0; turn < 2; turn++) {
    clock_gettime(CLOCK_MONOTONIC_RAW, &before);
    if (int error = kc_gpu_take_back()) return error;
    clock_gettime(CLOCK_MONOTONIC_RAW, &after);
  }
  *ns = (after.tv_sec - before.tv_sec) * 1000000000LL + after.tv_nsec - before.tv_nsec;
  return 0;
}
