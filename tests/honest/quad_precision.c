/* kernel: prefix_sum
   outcome: solved

   A running sum in __float128, whose arithmetic is in functions of the compiler's own library. */
#include <stdint.h>

void prefix_sum(const float *x, float *out, int64_t n) {
  __float128 sum = 0;
  for (int64_t i = 0; i < n; i++) out[i] = (float)(sum += x[i]);
}
