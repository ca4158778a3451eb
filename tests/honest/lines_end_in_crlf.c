/* kernel: axpy
   outcome: solved

   Written on a system whose lines end in two characters. */
#include <stdint.h>
#define LAST(i) \
  (i)

void axpy(const float *x, const float *y, float *out, int64_t n, float a) {
  // both ends
  for (int64_t i = 0; i < n; i++) out[LAST(i)] = a * x[i] + y[i];
}
