/* kernel: spmv_csr
   outcome: solved

   A function within a function that is only called, never pointed to: it needs no trampoline on the stack. */
#include <stdint.h>

void spmv_csr(const int64_t *row_ptr, const int32_t *col_idx, const float *values, const float *x, float *y,
              int64_t rows, int64_t cols, int64_t nnz) {
  double sum_of(int64_t row) {
    double sum = 0;
    for (int64_t e = row_ptr[row]; e < row_ptr[row + 1]; e++) sum += (double)values[e] * x[col_idx[e]];
    return sum;
  }
  (void)cols, (void)nnz;
  for (int64_t r = 0; r < rows; r++) y[r] = (float)sum_of(r);
}
