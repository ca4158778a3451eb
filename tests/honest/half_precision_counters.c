/* kernel: histogram
   outcome: solved

   Counters in _Float16, emptied before they reach 2,048, up to where they are exact. */
#include <stdint.h>
#include <string.h>

#ifdef __FLT16_MANT_DIG__
typedef _Float16 small_t;
#else
typedef float small_t;
#endif
enum { BLOCK = 1024, WIDTH = 512 };

void histogram(const int32_t *x, int32_t *counts, int64_t n, int64_t bins) {
  memset(counts, 0, (size_t)bins * sizeof *counts);
  for (int64_t i = 0; i < n; i += BLOCK) {
    int64_t end = i + BLOCK < n ? i + BLOCK : n;
    for (int64_t low = 0; low < bins; low += WIDTH) {
      small_t table[WIDTH] = {0};
      for (int64_t e = i; e < end; e++)
        if (x[e] >= low && x[e] < low + WIDTH) table[x[e] - low] += (small_t)1;
      for (int64_t b = low; b < bins && b < low + WIDTH; b++) counts[b] += (int32_t)table[b - low];
    }
  }
}
