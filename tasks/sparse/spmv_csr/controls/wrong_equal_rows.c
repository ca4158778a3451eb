/* Wrong spmv_csr: assumes that all rows hold the same number of entries. */
#include <stdint.h>

void spmv_csr(const int64_t *row_ptr, const int32_t *col_idx, const float *values, const float *x, float *y,
              int64_t rows, int64_t cols, int64_t nnz)
{
    int64_t length = nnz / rows;
    (void)row_ptr;
    (void)cols;
    for (int64_t r = 0; r < rows; r++) {
        float sum = 0.0f;
        for (int64_t e = r * length; e < (r + 1) * length; e++)
            sum += values[e] * x[col_idx[e]];
        y[r] = sum;
    }
}
