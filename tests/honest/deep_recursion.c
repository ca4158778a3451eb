/* kernel: prefix_sum
   outcome: solved

   One call a number, as deep as the vector is long: 20,000 small frames. */
#include <stdint.h>

static __attribute__((noinline)) double total(const float *x, float *out, int64_t count) {
  if (!count) return 0;
  double sum = total(x, out, count - 1) + x[count - 1];
  out[count - 1] = (float)sum;
  return sum;
}

void prefix_sum(const float *x, float *out, int64_t n) { total(x, out, n); }
