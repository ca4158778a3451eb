/* Honest spmv_csr: one loop over the entries, the row advances when its end is reached. */
#include <stdint.h>

void spmv_csr(const int64_t *row_ptr, const int32_t *col_idx, const float *values, const float *x, float *y,
              int64_t rows, int64_t cols, int64_t nnz)
{
    int64_t row = 0;
    (void)cols;
    for (int64_t r = 0; r < rows; r++)
        y[r] = 0.0f;
    for (int64_t e = 0; e < nnz; e++) {
        while (e >= row_ptr[row + 1])
            row++;
        y[row] += values[e] * x[col_idx[e]];
    }
}
