/* HIP's names for what CUDA's driver knows of memory that processes share, and for what the judge's own sources alone
   may call: none but they include it. */
#pragma once
#include <cuda.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>

#define hipProfilerStart cudaProfilerStart
#define hipSetDeviceFlags cudaSetDeviceFlags
#define hipDeviceScheduleSpin cudaDeviceScheduleSpin
#define hipMemGenericAllocationHandle_t CUmemGenericAllocationHandle
#define hipMemAllocationProp CUmemAllocationProp
#define hipMemAccessDesc CUmemAccessDesc
#define hipMemAllocationTypePinned CU_MEM_ALLOCATION_TYPE_PINNED
#define hipMemHandleTypePosixFileDescriptor CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
#define hipMemLocationTypeDevice CU_MEM_LOCATION_TYPE_DEVICE
#define hipMemAllocationGranularityMinimum CU_MEM_ALLOC_GRANULARITY_MINIMUM
#define hipMemAccessFlagsProtRead CU_MEM_ACCESS_FLAGS_PROT_READ
#define hipMemAccessFlagsProtReadWrite CU_MEM_ACCESS_FLAGS_PROT_READWRITE

/* The driver's function of that name, asked for at run time: nothing has to be linked that comes with a driver. Its
   errors have the numbers of the runtime's. */
template <class Function> static Function *kc_driver(const char *name) {
  void *found = nullptr;
  cudaDriverEntryPointQueryResult how;
  return cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &how) ? nullptr : (Function *)found;
}
#define KC_DRIVER(function, ...) (cudaError_t) kc_driver<decltype(function)>(#function)(__VA_ARGS__)

static inline cudaError_t hipMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *wanted,
                                                         CUmemAllocationGranularity_flags which) {
  return KC_DRIVER(cuMemGetAllocationGranularity, bytes, wanted, which);
}
static inline cudaError_t hipMemCreate(CUmemGenericAllocationHandle *memory, size_t bytes,
                                       const CUmemAllocationProp *wanted, unsigned long long flags) {
  return KC_DRIVER(cuMemCreate, memory, bytes, wanted, flags);
}
static inline cudaError_t hipMemRelease(CUmemGenericAllocationHandle memory) {
  return KC_DRIVER(cuMemRelease, memory);
}
static inline cudaError_t hipMemExportToShareableHandle(void *handle, CUmemGenericAllocationHandle memory,
                                                        CUmemAllocationHandleType type, unsigned long long flags) {
  return KC_DRIVER(cuMemExportToShareableHandle, handle, memory, type, flags);
}
static inline cudaError_t hipMemImportFromShareableHandle(CUmemGenericAllocationHandle *memory, void *handle,
                                                          CUmemAllocationHandleType type) {
  return KC_DRIVER(cuMemImportFromShareableHandle, memory, handle, type);
}
static inline cudaError_t hipMemAddressReserve(void **at, size_t bytes, size_t alignment, void *wanted,
                                               unsigned long long flags) {
  return KC_DRIVER(cuMemAddressReserve, (CUdeviceptr *)at, bytes, alignment, (CUdeviceptr)wanted, flags);
}
static inline cudaError_t hipMemAddressFree(void *at, size_t bytes) {
  return KC_DRIVER(cuMemAddressFree, (CUdeviceptr)at, bytes);
}
static inline cudaError_t hipMemMap(void *at, size_t bytes, size_t offset, CUmemGenericAllocationHandle memory,
                                    unsigned long long flags) {
  return KC_DRIVER(cuMemMap, (CUdeviceptr)at, bytes, offset, memory, flags);
}
static inline cudaError_t hipMemUnmap(void *at, size_t bytes) { return KC_DRIVER(cuMemUnmap, (CUdeviceptr)at, bytes); }
static inline cudaError_t hipMemSetAccess(void *at, size_t bytes, const CUmemAccessDesc *access, size_t count) {
  return KC_DRIVER(cuMemSetAccess, (CUdeviceptr)at, bytes, access, count);
}
