/* The calls of HIP's runtime that a host program makes: one device, all work done when a call returns. */
#ifndef KC_HOST_H
#define KC_HOST_H
#include "kc_errors.h"
#include "kc_fibres.h"
#include "kc_launch.h"
#include "kc_maths.h"
#include <cstdlib>
#include <cstring>

namespace kc {

constexpr std::size_t MEMORY_BYTES = std::size_t(64) << 30;
/* What streams and events point to: one serves for all, as nothing is ever under way. */
static char handle;
template <class T> T *some_handle() { return reinterpret_cast<T *>(&handle); }

static inline hipError_t valid_if(bool valid) { return answer(valid ? hipSuccess : hipErrorInvalidValue); }
static inline hipError_t good_handle_if(bool good) { return answer(good ? hipSuccess : hipErrorInvalidHandle); }

}  // namespace kc

/* Devices */

struct hipDeviceProp_t {
  char name[256], gcnArchName[256];
  int major, minor, warpSize, multiProcessorCount, clockRate, memoryClockRate, memoryBusWidth, l2CacheSize;
  int maxThreadsPerBlock, maxThreadsPerMultiProcessor, maxBlocksPerMultiProcessor, regsPerBlock, regsPerMultiprocessor;
  int maxThreadsDim[3], maxGridSize[3];
  std::size_t totalGlobalMem, totalConstMem, sharedMemPerBlock, sharedMemPerBlockOptin, sharedMemPerMultiprocessor;
  std::size_t maxSharedMemoryPerMultiProcessor;
  int concurrentKernels, cooperativeLaunch, integrated, canMapHostMemory, managedMemory, unifiedAddressing;
  int pciBusID, pciDeviceID, pciDomainID;
};

static inline hipError_t hipGetDeviceProperties(hipDeviceProp_t *properties, int device) {
  if (device != 0) return kc::answer(hipErrorInvalidDevice);
  if (!properties) return kc::answer(hipErrorInvalidValue);
  hipDeviceProp_t p = {};
  std::strcpy(p.name, "emulated");
  std::strcpy(p.gcnArchName, "gfx942");
  p.major = 9, p.minor = 4;
  p.warpSize = KC_WAVE;
  p.multiProcessorCount = 4;
  p.clockRate = p.memoryClockRate = 1'000'000;
  p.memoryBusWidth = 64;
  p.l2CacheSize = 4 << 20;
  p.maxThreadsPerBlock = kc::MOST_THREADS;
  p.maxThreadsPerMultiProcessor = 2 * kc::MOST_THREADS;
  p.maxBlocksPerMultiProcessor = 2;
  p.regsPerBlock = p.regsPerMultiprocessor = 64 << 10;
  for (int &most : p.maxThreadsDim) most = kc::MOST_THREADS;
  p.maxGridSize[0] = INT32_MAX, p.maxGridSize[1] = p.maxGridSize[2] = 65536;
  p.totalGlobalMem = kc::MEMORY_BYTES;
  p.totalConstMem = INT32_MAX;
  p.sharedMemPerBlock = p.sharedMemPerBlockOptin = kc::DYNAMIC_BYTES;
  p.sharedMemPerMultiprocessor = p.maxSharedMemoryPerMultiProcessor = kc::DYNAMIC_BYTES;
  p.concurrentKernels = p.canMapHostMemory = p.managedMemory = p.unifiedAddressing = 1;
  *properties = p;
  return hipSuccess;
}

enum hipDeviceAttribute_t {
  hipDeviceAttributeMaxThreadsPerBlock,
  hipDeviceAttributeMaxBlockDimX,
  hipDeviceAttributeMaxBlockDimY,
  hipDeviceAttributeMaxBlockDimZ,
  hipDeviceAttributeMaxGridDimX,
  hipDeviceAttributeMaxGridDimY,
  hipDeviceAttributeMaxGridDimZ,
  hipDeviceAttributeMaxSharedMemoryPerBlock,
  hipDeviceAttributeSharedMemPerBlockOptin,
  hipDeviceAttributeMaxSharedMemoryPerMultiprocessor,
  hipDeviceAttributeWarpSize,
  hipDeviceAttributeMultiprocessorCount,
  hipDeviceAttributeMaxThreadsPerMultiProcessor,
  hipDeviceAttributeMaxRegistersPerBlock,
  hipDeviceAttributeClockRate,
  hipDeviceAttributeMemoryClockRate,
  hipDeviceAttributeMemoryBusWidth,
  hipDeviceAttributeL2CacheSize,
  hipDeviceAttributeComputeCapabilityMajor,
  hipDeviceAttributeComputeCapabilityMinor,
  hipDeviceAttributeCooperativeLaunch,
};

static inline hipError_t hipDeviceGetAttribute(int *value, hipDeviceAttribute_t attribute, int device) {
  hipDeviceProp_t p;
  if (hipError_t error = hipGetDeviceProperties(&p, device)) return error;
  const int values[] = {
      p.maxThreadsPerBlock, p.maxThreadsDim[0], p.maxThreadsDim[1], p.maxThreadsDim[2], p.maxGridSize[0],
      p.maxGridSize[1], p.maxGridSize[2], static_cast<int>(p.sharedMemPerBlock),
      static_cast<int>(p.sharedMemPerBlockOptin), static_cast<int>(p.sharedMemPerMultiprocessor), p.warpSize,
      p.multiProcessorCount, p.maxThreadsPerMultiProcessor, p.regsPerBlock, p.clockRate, p.memoryClockRate,
      p.memoryBusWidth, p.l2CacheSize, p.major, p.minor, p.cooperativeLaunch,
  };
  static_assert(sizeof values / sizeof *values == hipDeviceAttributeCooperativeLaunch + 1);
  if (!value || attribute < 0 || attribute > hipDeviceAttributeCooperativeLaunch) return kc::valid_if(false);
  *value = values[attribute];
  return hipSuccess;
}

static inline hipError_t hipGetDeviceCount(int *count) { return *count = 1, hipSuccess; }
static inline hipError_t hipGetDevice(int *device) { return *device = 0, hipSuccess; }
static inline hipError_t hipSetDevice(int device) { return kc::answer(device ? hipErrorInvalidDevice : hipSuccess); }
static inline hipError_t hipInit(unsigned) { return hipSuccess; }
static inline hipError_t hipDeviceReset() { return hipSuccess; }
static inline hipError_t hipDeviceSynchronize() { return hipSuccess; }
static inline hipError_t hipRuntimeGetVersion(int *version) { return *version = 60'000'000, hipSuccess; }
static inline hipError_t hipDriverGetVersion(int *version) { return hipRuntimeGetVersion(version); }

/* Memory. All of it is the host's. */

enum hipMemcpyKind {
  hipMemcpyHostToHost,
  hipMemcpyHostToDevice,
  hipMemcpyDeviceToHost,
  hipMemcpyDeviceToDevice,
  hipMemcpyDefault,
};
using hipDeviceptr_t = void *;
#define hipHostMallocDefault 0
#define hipHostRegisterDefault 0
#define hipMemAttachGlobal 1

namespace kc {

/* What nobody has written yet must not be taken for zeros. */
static inline hipError_t allocate(void **pointer, std::size_t bytes) {
  if (!pointer) return answer(hipErrorInvalidValue);
  *pointer = nullptr;
  if (!bytes) return hipSuccess;
  if (bytes > MEMORY_BYTES) return answer(hipErrorOutOfMemory);
  *pointer = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!*pointer) return answer(hipErrorOutOfMemory);
  std::memset(*pointer, UNSET, bytes);
  return hipSuccess;
}

static inline hipError_t copy(void *to, const void *from, std::size_t bytes) {
  if (bytes && (!to || !from)) return answer(hipErrorInvalidValue);
  if (bytes) std::memmove(to, from, bytes);
  return hipSuccess;
}

template <class T> hipError_t fill(void *to, T value, std::size_t count) {
  if (count && !to) return answer(hipErrorInvalidValue);
  for (std::size_t i = 0; i < count; i++) std::memcpy(static_cast<char *>(to) + i * sizeof value, &value, sizeof value);
  return hipSuccess;
}

}  // namespace kc

template <class T> hipError_t hipMalloc(T **pointer, std::size_t bytes) {
  return kc::allocate(reinterpret_cast<void **>(pointer), bytes);
}
template <class T> hipError_t hipMallocAsync(T **pointer, std::size_t bytes, hipStream_t) {
  return hipMalloc(pointer, bytes);
}
template <class T> hipError_t hipMallocManaged(T **pointer, std::size_t bytes, unsigned = hipMemAttachGlobal) {
  return hipMalloc(pointer, bytes);
}
template <class T> hipError_t hipHostMalloc(T **pointer, std::size_t bytes, unsigned = hipHostMallocDefault) {
  return hipMalloc(pointer, bytes);
}
static inline hipError_t hipFree(void *pointer) { return std::free(pointer), hipSuccess; }
static inline hipError_t hipFreeAsync(void *pointer, hipStream_t) { return hipFree(pointer); }
static inline hipError_t hipHostFree(void *pointer) { return hipFree(pointer); }
static inline hipError_t hipHostRegister(void *, std::size_t, unsigned) { return hipSuccess; }
static inline hipError_t hipHostUnregister(void *) { return hipSuccess; }
static inline hipError_t hipMemGetInfo(std::size_t *free, std::size_t *total) {
  return *free = *total = kc::MEMORY_BYTES, hipSuccess;
}

static inline hipError_t hipMemcpy(void *to, const void *from, std::size_t bytes, hipMemcpyKind) {
  return kc::copy(to, from, bytes);
}
static inline hipError_t hipMemcpyAsync(void *to, const void *from, std::size_t bytes, hipMemcpyKind,
                                        hipStream_t = nullptr) {
  return kc::copy(to, from, bytes);
}
static inline hipError_t hipMemcpyHtoD(hipDeviceptr_t to, const void *from, std::size_t bytes) {
  return kc::copy(to, from, bytes);
}
static inline hipError_t hipMemcpyDtoH(void *to, hipDeviceptr_t from, std::size_t bytes) {
  return kc::copy(to, from, bytes);
}
static inline hipError_t hipMemcpyDtoD(hipDeviceptr_t to, hipDeviceptr_t from, std::size_t bytes) {
  return kc::copy(to, from, bytes);
}
static inline hipError_t hipMemcpy2D(void *to, std::size_t to_pitch, const void *from, std::size_t from_pitch,
                                     std::size_t width, std::size_t height, hipMemcpyKind) {
  if (width > to_pitch || width > from_pitch) return kc::answer(hipErrorInvalidPitchValue);
  for (std::size_t row = 0; row < height; row++) {
    const char *source = static_cast<const char *>(from) + row * from_pitch;
    if (hipError_t error = kc::copy(static_cast<char *>(to) + row * to_pitch, source, width)) return error;
  }
  return hipSuccess;
}
static inline hipError_t hipMemcpy2DAsync(void *to, std::size_t to_pitch, const void *from, std::size_t from_pitch,
                                          std::size_t width, std::size_t height, hipMemcpyKind kind,
                                          hipStream_t = nullptr) {
  return hipMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
}

static inline hipError_t hipMemset(void *to, int value, std::size_t bytes) {
  return kc::fill(to, static_cast<unsigned char>(value), bytes);
}
static inline hipError_t hipMemsetAsync(void *to, int value, std::size_t bytes, hipStream_t = nullptr) {
  return hipMemset(to, value, bytes);
}
static inline hipError_t hipMemsetD8(hipDeviceptr_t to, unsigned char value, std::size_t count) {
  return kc::fill(to, value, count);
}
static inline hipError_t hipMemsetD16(hipDeviceptr_t to, unsigned short value, std::size_t count) {
  return kc::fill(to, value, count);
}
static inline hipError_t hipMemsetD32(hipDeviceptr_t to, int value, std::size_t count) {
  return kc::fill(to, value, count);
}
static inline hipError_t hipMemsetD32Async(hipDeviceptr_t to, int value, std::size_t count, hipStream_t = nullptr) {
  return kc::fill(to, value, count);
}
static inline hipError_t hipMemset2D(void *to, std::size_t pitch, int value, std::size_t width, std::size_t height) {
  for (std::size_t row = 0; row < height; row++) {
    if (hipError_t error = hipMemset(static_cast<char *>(to) + row * pitch, value, width)) return error;
  }
  return hipSuccess;
}

/* Symbols are the variables themselves. */
#define HIP_SYMBOL(name) name

namespace kc {
template <class T> char *within(T &symbol, std::size_t bytes, std::size_t offset) {
  bool fits = offset <= sizeof symbol && bytes <= sizeof symbol - offset;
  return fits ? const_cast<char *>(reinterpret_cast<const volatile char *>(&symbol)) + offset : nullptr;
}
}  // namespace kc

template <class T>
hipError_t hipMemcpyToSymbol(T &symbol, const void *from, std::size_t bytes, std::size_t offset = 0,
                             hipMemcpyKind = hipMemcpyHostToDevice) {
  return kc::copy(kc::within(symbol, bytes, offset), from, bytes);
}
template <class T>
hipError_t hipMemcpyToSymbolAsync(T &symbol, const void *from, std::size_t bytes, std::size_t offset,
                                  hipMemcpyKind kind, hipStream_t = nullptr) {
  return hipMemcpyToSymbol(symbol, from, bytes, offset, kind);
}
template <class T>
hipError_t hipMemcpyFromSymbol(void *to, const T &symbol, std::size_t bytes, std::size_t offset = 0,
                               hipMemcpyKind = hipMemcpyDeviceToHost) {
  return kc::copy(to, kc::within(symbol, bytes, offset), bytes);
}
template <class T>
hipError_t hipMemcpyFromSymbolAsync(void *to, const T &symbol, std::size_t bytes, std::size_t offset,
                                    hipMemcpyKind kind, hipStream_t = nullptr) {
  return hipMemcpyFromSymbol(to, symbol, bytes, offset, kind);
}
template <class T> hipError_t hipGetSymbolAddress(void **address, T &symbol) {
  return *address = kc::within(symbol, 0, 0), hipSuccess;
}
template <class T> hipError_t hipGetSymbolSize(std::size_t *bytes, const T &symbol) {
  return *bytes = sizeof symbol, hipSuccess;
}

/* Streams and events */

struct ihipEvent_t;
using hipEvent_t = ihipEvent_t *;
using hipHostFn_t = void (*)(void *);
#define hipStreamDefault 0
#define hipStreamNonBlocking 1
#define hipStreamPerThread (static_cast<hipStream_t>(nullptr))
#define hipEventDefault 0
#define hipEventBlockingSync 1
#define hipEventDisableTiming 2

static inline hipError_t hipStreamCreate(hipStream_t *stream) {
  return *stream = kc::some_handle<ihipStream_t>(), hipSuccess;
}
static inline hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned) { return hipStreamCreate(stream); }
static inline hipError_t hipStreamCreateWithPriority(hipStream_t *stream, unsigned, int) {
  return hipStreamCreate(stream);
}
static inline hipError_t hipStreamDestroy(hipStream_t stream) { return kc::good_handle_if(stream); }
static inline hipError_t hipStreamSynchronize(hipStream_t) { return hipSuccess; }
static inline hipError_t hipStreamQuery(hipStream_t) { return hipSuccess; }
static inline hipError_t hipLaunchHostFunc(hipStream_t, hipHostFn_t function, void *data) {
  return function(data), hipSuccess;
}

static inline hipError_t hipEventCreate(hipEvent_t *event) {
  return *event = kc::some_handle<ihipEvent_t>(), hipSuccess;
}
static inline hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned) { return hipEventCreate(event); }
static inline hipError_t hipEventDestroy(hipEvent_t event) { return kc::good_handle_if(event); }
static inline hipError_t hipEventRecord(hipEvent_t event, hipStream_t = nullptr) { return kc::good_handle_if(event); }
static inline hipError_t hipEventSynchronize(hipEvent_t event) { return kc::good_handle_if(event); }
static inline hipError_t hipEventQuery(hipEvent_t event) { return kc::good_handle_if(event); }
/* There is no clock here: time is for others to measure. */
static inline hipError_t hipEventElapsedTime(float *milliseconds, hipEvent_t start, hipEvent_t stop) {
  return *milliseconds = 0, kc::good_handle_if(start && stop);
}
static inline hipError_t hipStreamWaitEvent(hipStream_t, hipEvent_t event, unsigned = 0) {
  return kc::good_handle_if(event);
}

/* What a program may ask about a kernel, and set */

struct hipFuncAttributes {
  int binaryVersion, cacheModeCA, maxDynamicSharedSizeBytes, maxThreadsPerBlock, numRegs, preferredShmemCarveout;
  int ptxVersion;
  std::size_t constSizeBytes, localSizeBytes, sharedSizeBytes;
};
enum hipFuncAttribute {
  hipFuncAttributeMaxDynamicSharedMemorySize = 8,
  hipFuncAttributePreferredSharedMemoryCarveout = 9,
  hipFuncAttributeMax,
};
enum hipFuncCache_t { hipFuncCachePreferNone, hipFuncCachePreferShared, hipFuncCachePreferL1, hipFuncCachePreferEqual };

template <class F> hipError_t hipFuncSetAttribute(F, hipFuncAttribute, int) { return hipSuccess; }
template <class F> hipError_t hipFuncSetCacheConfig(F, hipFuncCache_t) { return hipSuccess; }
template <class F> hipError_t hipFuncGetAttributes(hipFuncAttributes *attributes, F) {
  *attributes = {};
  attributes->maxThreadsPerBlock = kc::MOST_THREADS;
  attributes->maxDynamicSharedSizeBytes = kc::DYNAMIC_BYTES;
  attributes->numRegs = 32;
  return hipSuccess;
}

template <class F>
hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, F, int threads, std::size_t dynamic_bytes) {
  if (threads <= 0) return kc::answer(hipErrorInvalidValue);
  bool fits = threads <= static_cast<int>(kc::MOST_THREADS) && dynamic_bytes <= kc::DYNAMIC_BYTES;
  int by_threads = static_cast<int>(2 * kc::MOST_THREADS) / threads;
  int by_memory = dynamic_bytes ? static_cast<int>(kc::DYNAMIC_BYTES / dynamic_bytes) : by_threads;
  *blocks = fits ? min(by_threads, by_memory) : 0;
  return hipSuccess;
}
template <class F>
hipError_t hipOccupancyMaxPotentialBlockSize(int *grid, int *block, F kernel, std::size_t dynamic_bytes = 0,
                                             int most = 0) {
  *block = most > 0 && most < static_cast<int>(kc::MOST_THREADS) ? most : static_cast<int>(kc::MOST_THREADS);
  int blocks = 0;
  hipError_t error = hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, *block, dynamic_bytes);
  *grid = 4 * blocks;
  return error;
}
#endif
