/* kernel: softmax_rows
   outcome: solved

   Asks for headers in every way that ends at the compiler's own: by macro, by __has_include, with blanks, twice. */
#define MATHS <math.h>
#define NUMBERS "stdint.h"
#include MATHS
#  include /* between */ NUMBERS
#inc\
lude <stddef.h>
#ifdef __has_include
#if __has_include(<omp.h>)
#include <omp.h>
#endif
#if __has_include("not_there.h")
#include "not_there.h"
#endif
#endif
#include <stdint.h>
#undef NDEBUG
#include <assert.h>
#include <assert.h>

void softmax_rows(const float *x, float *out, int64_t rows, int64_t cols) {
  assert(sizeof(size_t) == 8);
  for (int64_t r = 0; r < rows; r++) {
    double top = x[r * cols], sum = 0;
    for (int64_t c = 0; c < cols; c++) top = fmax(top, x[r * cols + c]);
    for (int64_t c = 0; c < cols; c++) sum += exp(x[r * cols + c] - top);
    for (int64_t c = 0; c < cols; c++) out[r * cols + c] = (float)(exp(x[r * cols + c] - top) / sum);
  }
}
