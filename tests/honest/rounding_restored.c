/* kernel: prefix_sum
   outcome: solved

   Interval arithmetic: the sum rounded down and rounded up, the middle of both; the rounding mode is put back. */
#include <fenv.h>
#include <stdint.h>
#pragma STDC FENV_ACCESS ON

void prefix_sum(const float *x, float *out, int64_t n) {
  volatile double low = 0, high = 0;
  int before = fegetround();
  fenv_t environment;
  feholdexcept(&environment);
  for (int64_t i = 0; i < n; i++) {
    fesetround(FE_DOWNWARD);
    low = low + x[i];
    fesetround(FE_UPWARD);
    high = high + x[i];
    fesetround(before);
    out[i] = (float)(low + (high - low) / 2);
  }
  fesetenv(&environment);
  fesetround(before);
}
