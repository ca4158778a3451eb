/* What one core of this machine can do at most: bytes read and copied, floating-point operations. Times are in ns. */
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
#include <time.h>

/* The widest vectors of this processor, and a store of one that leaves the caches alone where there is such a thing. */
#if defined(__AVX512F__)
enum { VECTOR = 64 };
#define STORE(at, value) __builtin_ia32_movntdq512((void *)(at), (value))
#elif defined(__AVX__)
enum { VECTOR = 32 };
#define STORE(at, value) __builtin_ia32_movntdq256((void *)(at), (value))
#else
enum { VECTOR = 16 };
#define STORE(at, value) (*(at) = (value))
#endif

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* The compiler must believe that memory is used between two passes, or it would keep one of them. */
#define USED(at) __asm__ volatile("" : : "r"(at) : "memory")

typedef long long words __attribute__((vector_size(VECTOR)));
enum { LINES = 8, STREAMS = 4 };

/* Read an area of a multiple of 2048 bytes, aligned to 64, in four streams: one keeps too few lines in flight. */
int64_t kc_read(const char *area, int64_t bytes, int64_t passes) {
  int64_t start = now_ns(), part = bytes / STREAMS;
  for (int64_t pass = 0; pass < passes; pass++) {
    words sum[LINES] = {{0}};
    for (int64_t offset = 0; offset < part; offset += LINES * VECTOR)
      for (int stream = 0; stream < STREAMS; stream++) {
        const words *at = (const words *)(area + stream * part + offset);
        for (int i = 0; i < LINES; i++) sum[i] |= at[i];
      }
    for (int i = 1; i < LINES; i++) sum[0] |= sum[i];
    USED(sum);
  }
  return now_ns() - start;
}

/* Combine two streams into a third past the caches; every byte of the area is touched once a pass. */
int64_t kc_stream(char *area, int64_t bytes, int64_t passes) {
  int64_t start = now_ns(), part = bytes / 3 / 64 * 64;
  const words *x = (const words *)area, *y = (const words *)(area + part);
  words *out = (words *)(area + 2 * part);
  for (int64_t pass = 0; pass < passes; pass++) {
    for (int64_t i = 0; i < part / VECTOR; i++) STORE(out + i, x[i] | y[i]);
    __sync_synchronize();
    USED(area);
  }
  return now_ns() - start;
}

/* Copy the first half of an area to its second half `passes` times; every byte of the area is touched once a pass. */
int64_t kc_copy(char *area, int64_t bytes, int64_t passes) {
  int64_t start = now_ns();
  for (int64_t pass = 0; pass < passes; pass++) {
    memcpy(area + bytes / 2, area, (size_t)bytes / 2);
    USED(area);
  }
  return now_ns() - start;
}

/* CHAINS independent chains of fused multiply-adds in registers: enough to hide their latency on any core today. */
enum { CHAINS = 12 };
#define PEAK(name, type)                                                     \
  int64_t name(int64_t rounds, int64_t *operations) {                        \
    typedef type lanes __attribute__((vector_size(VECTOR)));                 \
    volatile type one = 1;                                                   \
    lanes scale = {0}, chain[CHAINS];                                        \
    scale += one;                                                            \
    for (int i = 0; i < CHAINS; i++) chain[i] = scale;                       \
    int64_t start = now_ns();                                                \
    for (int64_t round = 0; round < rounds; round++)                         \
      for (int i = 0; i < CHAINS; i++) chain[i] = chain[i] * scale + scale;  \
    int64_t elapsed = now_ns() - start;                                      \
    USED(chain);                                                             \
    *operations = rounds * CHAINS * 2 * (int64_t)(VECTOR / sizeof(type));    \
    return elapsed;                                                          \
  }
PEAK(kc_peak_float32, float)
PEAK(kc_peak_float64, double)
