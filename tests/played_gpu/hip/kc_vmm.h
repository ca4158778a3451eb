/* Memory that processes share, as HIP documents it, played by files in memory: a device is a process's own memory
   here, and one buffer lies between two pages that fault. Events are read off the clock, for nothing runs beside us. */
#pragma once
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define hipDeviceScheduleSpin 1
#define hipMemAllocationTypePinned 1
#define hipMemHandleTypePosixFileDescriptor 1
#define hipMemLocationTypeDevice 1
#define hipMemAllocationGranularityMinimum 0
#define hipMemAccessFlagsProtRead 1
#define hipMemAccessFlagsProtReadWrite 3

typedef int hipMemGenericAllocationHandle_t;
struct hipMemLocation { int type, id; };
struct hipMemAllocationProp { int type, requestedHandleTypes; hipMemLocation location; };
struct hipMemAccessDesc { hipMemLocation location; int flags; };

enum { KC_PAGE = 4096 };

static inline hipError_t kc_played(bool worked) { return worked ? hipSuccess : hipErrorOutOfMemory; }
static inline hipError_t hipSetDeviceFlags(unsigned) { return hipSuccess; }
static inline hipError_t hipMemGetAllocationGranularity(size_t *bytes, const hipMemAllocationProp *, int) {
  return *bytes = KC_PAGE, hipSuccess;
}
static inline hipError_t hipMemCreate(int *memory, size_t bytes, const hipMemAllocationProp *, unsigned long long) {
  *memory = memfd_create("device", MFD_CLOEXEC);
  return kc_played(*memory >= 0 && ftruncate(*memory, (off_t)bytes) == 0);
}
static inline hipError_t hipMemRelease(int memory) { return kc_played(close(memory) == 0); }
static inline hipError_t hipMemExportToShareableHandle(void *handle, int memory, int, unsigned long long) {
  *(int *)handle = dup(memory);
  return kc_played(*(int *)handle >= 0);
}
static inline hipError_t hipMemImportFromShareableHandle(int *memory, void *handle, int) {
  *memory = dup((int)(intptr_t)handle);
  return kc_played(*memory >= 0);
}
static inline hipError_t hipMemAddressReserve(void **at, size_t bytes, size_t, void *, unsigned long long) {
  char *region = (char *)mmap(0, bytes + 2 * KC_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *at = region + KC_PAGE;
  return kc_played(region != MAP_FAILED);
}
static inline hipError_t hipMemAddressFree(void *at, size_t bytes) {
  return kc_played(munmap((char *)at - KC_PAGE, bytes + 2 * KC_PAGE) == 0);
}
static inline hipError_t hipMemMap(void *at, size_t bytes, size_t, int memory, unsigned long long) {
  return kc_played(mmap(at, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, memory, 0) == at);
}
static inline hipError_t hipMemUnmap(void *at, size_t bytes) {
  return kc_played(mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
}
static inline hipError_t hipMemSetAccess(void *at, size_t bytes, const hipMemAccessDesc *access, size_t) {
  return kc_played(mprotect(at, bytes, access->flags == hipMemAccessFlagsProtReadWrite ? PROT_READ | PROT_WRITE : PROT_READ) == 0);
}

/* A profiler is told in words, which a played one reads. */
static inline hipError_t hipProfilerStart() { return fputs("hipProfilerStart\n", stderr), hipSuccess; }

static timespec kc_recorded[2];
static inline hipError_t kc_record(int which) { return clock_gettime(CLOCK_MONOTONIC_RAW, &kc_recorded[which]), hipSuccess; }
#define hipEventRecord(event, stream) kc_record(&(event) == &after)
#define hipEventElapsedTime(milliseconds, first, second)                                                 \
  (*(milliseconds) = (float)((kc_recorded[1].tv_sec - kc_recorded[0].tv_sec) * 1e3 +                     \
                             (kc_recorded[1].tv_nsec - kc_recorded[0].tv_nsec) * 1e-6), hipSuccess)
