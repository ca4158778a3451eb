/* Baseline of spmv_csr: one sum a row. */
#include <stdint.h>
#include <tgmath.h>

#ifndef real
#define real float
#endif

void spmv_csr(const int64_t *row_ptr, const int32_t *col_idx, const real *values,
              const real *x, real *y, int64_t rows, int64_t cols, int64_t nnz)
{
    (void)cols;
    (void)nnz;
    for (int64_t r = 0; r < rows; r++) {
        real sum = 0;
        for (int64_t e = row_ptr[r]; e < row_ptr[r + 1]; e++)
            sum += values[e] * x[col_idx[e]];
        y[r] = sum;
    }
}

#ifdef KC_ORACLE
void spmv_csr_magnitude(const int64_t *row_ptr, const int32_t *col_idx,
                        const real *values, const real *x, real *y, int64_t rows,
                        int64_t cols, int64_t nnz)
{
    (void)cols;
    (void)nnz;
    for (int64_t r = 0; r < rows; r++) {
        real sum = 0;
        for (int64_t e = row_ptr[r]; e < row_ptr[r + 1]; e++)
            sum += fabs(values[e] * x[col_idx[e]]);
        y[r] = sum * sqrt((real)(row_ptr[r + 1] - row_ptr[r]));
    }
}
#endif
