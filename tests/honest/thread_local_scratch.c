/* kernel: softmax_rows
   outcome: solved

   Scratch in thread-local storage, a large and a small one, under OpenMP. */
#include <math.h>
#include <stdint.h>

enum { WIDTH = 4096 };
static _Thread_local double scratch[WIDTH];
_Thread_local double row_sum;

static void part(const float *in, float *to, int64_t count, float top) {
  for (int64_t c = 0; c < count; c++) row_sum += scratch[c] = exp((double)in[c] - top);
  for (int64_t c = 0; c < count; c++) to[c] = (float)scratch[c];
}

void softmax_rows(const float *x, float *out, int64_t rows, int64_t cols) {
#pragma omp parallel for
  for (int64_t r = 0; r < rows; r++) {
    const float *in = x + r * cols;
    float *to = out + r * cols, top = in[0];
    for (int64_t c = 1; c < cols; c++) top = fmaxf(top, in[c]);
    row_sum = 0;
    for (int64_t c = 0; c < cols; c += WIDTH) part(in + c, to + c, cols - c < WIDTH ? cols - c : WIDTH, top);
    for (int64_t c = 0; c < cols; c++) to[c] = (float)(to[c] / row_sum);
  }
}
