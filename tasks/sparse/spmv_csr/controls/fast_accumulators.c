/* Fast spmv_csr: eight independent sums a row hide the latency of the additions; x is prefetched. */
#include <stdint.h>

enum { AHEAD = 128 };

void spmv_csr(const int64_t *restrict row_ptr, const int32_t *restrict col_idx, const float *restrict values,
              const float *restrict x, float *restrict y, int64_t rows, int64_t cols, int64_t nnz)
{
    (void)cols;
    for (int64_t r = 0; r < rows; r++) {
        float s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0, s6 = 0, s7 = 0;
        int64_t e = row_ptr[r], end = row_ptr[r + 1];
        for (; e + 8 <= end; e += 8) {
            if (e + AHEAD + 8 <= nnz)
                for (int lane = 0; lane < 8; lane++)
                    __builtin_prefetch(x + col_idx[e + AHEAD + lane]);
            s0 += values[e] * x[col_idx[e]];
            s1 += values[e + 1] * x[col_idx[e + 1]];
            s2 += values[e + 2] * x[col_idx[e + 2]];
            s3 += values[e + 3] * x[col_idx[e + 3]];
            s4 += values[e + 4] * x[col_idx[e + 4]];
            s5 += values[e + 5] * x[col_idx[e + 5]];
            s6 += values[e + 6] * x[col_idx[e + 6]];
            s7 += values[e + 7] * x[col_idx[e + 7]];
        }
        for (; e < end; e++)
            s0 += values[e] * x[col_idx[e]];
        y[r] = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7));
    }
}
