/* Wrong spmv_csr: skips empty rows, whose results stay unwritten. */
#include <stdint.h>

void spmv_csr(const int64_t *row_ptr, const int32_t *col_idx, const float *values, const float *x, float *y,
              int64_t rows, int64_t cols, int64_t nnz)
{
    (void)cols;
    (void)nnz;
    for (int64_t r = 0; r < rows; r++) {
        int64_t first = row_ptr[r], end = row_ptr[r + 1];
        if (first == end)
            continue;
        float sum = 0.0f;
        for (int64_t e = first; e < end; e++)
            sum += values[e] * x[col_idx[e]];
        y[r] = sum;
    }
}
