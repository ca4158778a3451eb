/* kernel: axpy
   outcome: solved

   Instructions by hand that any kernel may use: fused multiply-add, prefetch, pause, the time stamp counter, cpuid and
   a byte swap there and back. */
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
static uint64_t ticks(void) {
  uint32_t low, high;
  __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
  return (uint64_t)high << 32 | low;
}

static int vendor_is_known(void) {
  uint32_t leaf = 0, words[3];
  __asm__ volatile("cpuid" : "+a"(leaf), "=b"(words[0]), "=c"(words[2]), "=d"(words[1]));
  return words[0] || words[1] || words[2];
}

static float swapped_twice(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  __asm__("bswap %0\n\tbswap %0" : "+r"(bits));
  memcpy(&value, &bits, sizeof bits);
  return value;
}

static float fused(float a, float x, float y) {
#ifdef __FMA__
  __asm__("vfmadd231ss %2, %1, %0" : "+x"(y) : "x"(a), "x"(x));
  return y;
#else
  return a * x + y;
#endif
}

void axpy(const float *x, const float *y, float *out, int64_t n, float a) {
  uint64_t begun = ticks();
  if (!vendor_is_known()) __asm__ volatile("pause");
  for (int64_t i = 0; i < n; i++) {
    __asm__ volatile("prefetcht0 (%0)" ::"r"(x + i));
    out[i] = fused(a, swapped_twice(x[i]), y[i]);
  }
  if (ticks() == begun) __asm__ volatile("lfence" ::: "memory");
}
#else
void axpy(const float *x, const float *y, float *out, int64_t n, float a) {
  for (int64_t i = 0; i < n; i++) out[i] = a * x[i] + y[i];
}
#endif
