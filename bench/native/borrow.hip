/* What a runner does on a GPU: borrows the judge's buffers, and stands around each call of a kernel. Loaded by the
   native runner (runner.c) and by the Python one before they load a submission. */
#include <hip/hip_runtime.h>
#if __has_include(<hip/kc_vmm.h>)
#include <hip/kc_vmm.h>
#endif
#include <cstdint>

#define TRY(expression)                                          \
  do {                                                           \
    if (hipError_t error = (expression)) return (int)error;      \
  } while (0)
#define EXPORTED extern "C" __attribute__((visibility("default")))

static hipStream_t stream;
static hipEvent_t before, after;

EXPORTED const char *kc_device_why(int error) { return hipGetErrorString((hipError_t)error); }

/* The one device that this process sees, and what a call needs on it; the main thread spins while it waits. */
EXPORTED int kc_device_open() {
  TRY(hipSetDeviceFlags(hipDeviceScheduleSpin));
  TRY(hipSetDevice(0));
  TRY(hipFree(nullptr));
  TRY(hipStreamCreate(&stream));
  TRY(hipEventCreate(&before));
  return (int)hipEventCreate(&after);
}

/* The stream that kernels are to launch on. */
EXPORTED void *kc_device_stream() { return (void *)stream; }

/* Map a buffer that was handed over as a descriptor; one that is not writable can be read alone, by every kernel. */
EXPORTED int kc_device_borrow(int fd, int64_t bytes, int writable, void **at) {
  hipMemGenericAllocationHandle_t memory;
  TRY(hipMemImportFromShareableHandle(&memory, (void *)(uintptr_t)fd, hipMemHandleTypePosixFileDescriptor));
  hipMemAccessDesc access = {};
  access.location.type = hipMemLocationTypeDevice;
  access.flags = writable ? hipMemAccessFlagsProtReadWrite : hipMemAccessFlagsProtRead;
  TRY(hipMemAddressReserve(at, (size_t)bytes, 0, nullptr, 0));
  TRY(hipMemMap(*at, (size_t)bytes, 0, memory, 0));
  TRY(hipMemSetAccess(*at, (size_t)bytes, &access, 1));
  return (int)hipMemRelease(memory);
}

__global__ void kc_nothing() {}

EXPORTED int kc_device_nothing() {
  kc_nothing<<<1, 1, 0, stream>>>();
  return (int)hipGetLastError();
}

/* Make the device ours: the first launch after another process has used it takes a switch, which is nobody's time. */
EXPORTED int kc_device_touch() {
  TRY((hipError_t)kc_device_nothing());
  return (int)hipDeviceSynchronize();
}

/* What follows is a submission's, for a profiler that counts from here on alone; others do without. */
EXPORTED int kc_device_show() { return (int)hipProfilerStart(); }

EXPORTED int kc_device_begin() { return (int)hipEventRecord(before, stream); }

/* Wait for all that was launched, on whichever stream; *ns is what the device's own clock says of this one. */
EXPORTED int kc_device_end(int64_t *ns) {
  const hipError_t launched = hipGetLastError();
  TRY(hipEventRecord(after, stream));
  TRY(hipDeviceSynchronize());
  float milliseconds;
  TRY(hipEventElapsedTime(&milliseconds, before, after));
  *ns = (int64_t)(milliseconds * 1e6f);
  return (int)launched;
}
