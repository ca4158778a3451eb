// Baseline of spmv_csr: a block a row; a tree in shared memory adds up its threads.
#include <hip/hip_runtime.h>
#include <stdint.h>
#ifndef real
#define real float
#endif

constexpr int THREADS = 64;

__global__ void multiply_rows(const int64_t *row_ptr, const int32_t *col_idx, const real *values, const real *x,
                              real *y)
{
    __shared__ real part[THREADS];
    const int me = threadIdx.x;
    const int64_t end = row_ptr[blockIdx.x + 1];
    real sum = 0;
    for (int64_t e = row_ptr[blockIdx.x] + me; e < end; e += THREADS)
        sum += values[e] * x[col_idx[e]];
    part[me] = sum;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (me < half)
            part[me] += part[me + half];
        __syncthreads();
    }
    if (me == 0)
        y[blockIdx.x] = part[0];
}

extern "C" void spmv_csr(const int64_t *row_ptr, const int32_t *col_idx, const real *values, const real *x, real *y,
                         int64_t rows, int64_t cols, int64_t nnz, hipStream_t stream)
{
    (void)cols;
    (void)nnz;
    multiply_rows<<<rows, THREADS, 0, stream>>>(row_ptr, col_idx, values, x, y);
}

#ifdef KC_ORACLE
// One thread a row.
__global__ void multiply_magnitudes(const int64_t *row_ptr, const int32_t *col_idx, const real *values, const real *x,
                                    real *y, int64_t rows)
{
    const int64_t r = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (r >= rows)
        return;
    real sum = 0;
    for (int64_t e = row_ptr[r]; e < row_ptr[r + 1]; e++)
        sum += fabs(values[e] * x[col_idx[e]]);
    y[r] = sum * sqrt((real)(row_ptr[r + 1] - row_ptr[r]));
}

extern "C" void spmv_csr_magnitude(const int64_t *row_ptr, const int32_t *col_idx, const real *values, const real *x,
                                   real *y, int64_t rows, int64_t cols, int64_t nnz, hipStream_t stream)
{
    (void)cols;
    (void)nnz;
    multiply_magnitudes<<<(rows + THREADS - 1) / THREADS, THREADS, 0, stream>>>(row_ptr, col_idx, values, x, y, rows);
}
#endif
