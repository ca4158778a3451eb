/* kernel: softmax_rows
   outcome: solved

   Flushes denormals to zero while it works, where the bound allows that, and puts the control register back. */
#include <math.h>
#include <stdint.h>
#ifdef __SSE__
#include <pmmintrin.h>
#endif

static void row_of(const float *in, float *to, int64_t cols) {
  float top = in[0], sum = 0;
  for (int64_t c = 1; c < cols; c++) top = in[c] > top ? in[c] : top;
  for (int64_t c = 0; c < cols; c++) sum += to[c] = expf(in[c] - top);
  for (int64_t c = 0; c < cols; c++) to[c] /= sum;
}

void softmax_rows(const float *x, float *out, int64_t rows, int64_t cols) {
#ifdef __SSE__
  unsigned before = _mm_getcsr();
  _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
  _MM_SET_DENORMALS_ZERO_MODE(_MM_DENORMALS_ZERO_ON);
#endif
  for (int64_t r = 0; r < rows; r++) row_of(x + r * cols, out + r * cols, cols);
#ifdef __SSE__
  _mm_setcsr(before);
#endif
}
