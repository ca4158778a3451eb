/* kernel: axpy
   outcome: solved

   Decimal floating point of 34 digits, where the compiler has it. */
#include <stdint.h>

#ifdef __DEC128_MANT_DIG__
typedef _Decimal128 wide_t;
#else
typedef double wide_t;
#endif

void axpy(const float *x, const float *y, float *out, int64_t n, float a) {
  wide_t factor = a;
  for (int64_t i = 0; i < n; i++) out[i] = (float)(factor * (wide_t)x[i] + (wide_t)y[i]);
}
