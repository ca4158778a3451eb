/* kernel: axpy
   outcome: solved

   A helper that is no `static` function: other names than the entry point stay inside the library. */
#include <stdint.h>

float multiply_add(float a, float x, float y) { return a * x + y; }

void axpy(const float *x, const float *y, float *out, int64_t n, float a) {
  for (int64_t i = 0; i < n; i++) out[i] = multiply_add(a, x[i], y[i]);
}
