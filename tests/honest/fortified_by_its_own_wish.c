/* kernel: spmv_csr
   outcome: solved

   Asks for the checked variants of the C library's functions, which have other names for the linker. */
#define _FORTIFY_SOURCE 2
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 256 };

static __attribute__((noinline)) double products(const float *values, const int32_t *columns, const float *x,
                                                 int64_t count, jmp_buf *back) {
  float held[ROOM];
  char text[16], copy[16];
  memcpy(held, values, (size_t)count * sizeof *held);
  if (snprintf(text, sizeof text, "%lld", (long long)count) < 0) longjmp(*back, 1);
  strcpy(copy, text);
  memset(text, 0, (size_t)strtol(copy, 0, 10) % sizeof text);
  double sum = 0;
  for (int64_t e = 0; e < count; e++) sum += (double)held[e] * x[columns[e]];
  return sum;
}

void spmv_csr(const int64_t *row_ptr, const int32_t *col_idx, const float *values, const float *x, float *y,
              int64_t rows, int64_t cols, int64_t nnz) {
  jmp_buf back;
  (void)cols, (void)nnz;
  if (setjmp(back)) abort();
  for (int64_t r = 0; r < rows; r++) {
    double sum = 0;
    for (int64_t e = row_ptr[r]; e < row_ptr[r + 1]; e += ROOM) {
      int64_t count = row_ptr[r + 1] - e < ROOM ? row_ptr[r + 1] - e : ROOM;
      sum += products(values + e, col_idx + e, x, count, &back);
    }
    y[r] = (float)sum;
  }
}
