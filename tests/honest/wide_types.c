/* kernel: prefix_sum
   outcome: solved

   An exact sum in fixed point of 128 bits, and long double to bring numbers there and back. */
#include <math.h>
#include <stdint.h>

static __int128 fixed(float value) { return (__int128)ldexpl(value, 60); }

void prefix_sum(const float *x, float *out, int64_t n) {
  __int128 sum = 0;
  for (int64_t i = 0; i < n; i++) {
    sum += fixed(x[i]);
    out[i] = (float)ldexpl((long double)sum, -60);
  }
}
