/* kernel: histogram
   outcome: solved

   4 MiB of tables on the stack, all of it touched; the limit is 8 MiB. */
#include <stdint.h>
#include <string.h>

enum { LANES = 64, WIDTH = 16384 };

static __attribute__((noinline)) void counted(const int32_t *x, int32_t *counts, int64_t n, int64_t low,
                                              int64_t width) {
  int32_t tables[LANES][WIDTH];
  memset(tables, 0, sizeof tables);
  for (int64_t i = 0; i < n; i++)
    if (x[i] >= low && x[i] < low + width) tables[i % LANES][x[i] - low]++;
  for (int64_t b = 0; b < width; b++) {
    int32_t sum = 0;
    for (int lane = 0; lane < LANES; lane++) sum += tables[lane][b];
    counts[low + b] = sum;
  }
}

void histogram(const int32_t *x, int32_t *counts, int64_t n, int64_t bins) {
  for (int64_t low = 0; low < bins; low += WIDTH) counted(x, counts, n, low, bins - low < WIDTH ? bins - low : WIDTH);
}
