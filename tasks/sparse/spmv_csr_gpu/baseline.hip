// Baseline of spmv_csr_gpu: 32 lanes a row, which is a wave or half of one; they add up their sums by shuffles.
#include <hip/hip_runtime.h>
#include <stdint.h>

#ifndef real
#define real float
#endif

constexpr int LANES = 32, THREADS = 256, ROWS = THREADS / LANES;

// What is added up: the products, or their magnitudes.
template <bool IS_MAGNITUDE> __device__ real term(real value, real factor)
{
    return IS_MAGNITUDE ? fabs(value * factor) : value * factor;
}

template <bool IS_MAGNITUDE>
__global__ void multiply_rows(const int64_t *row_ptr, const int32_t *col_idx, const real *values, const real *x,
                              real *y, int64_t rows)
{
    const int lane = threadIdx.x % LANES;
    const int64_t r = (int64_t)blockIdx.x * ROWS + threadIdx.x / LANES;
    const int64_t first = r < rows ? row_ptr[r] : 0, end = r < rows ? row_ptr[r + 1] : 0;
    real sum = 0;
    for (int64_t e = first + lane; e < end; e += LANES)
        sum += term<IS_MAGNITUDE>(values[e], x[col_idx[e]]);
    for (int distance = LANES / 2; distance > 0; distance /= 2)
        sum += __shfl_xor(sum, distance, LANES);
    if (r < rows && lane == 0)
        y[r] = IS_MAGNITUDE ? sum * sqrt((real)(end - first)) : sum;
}

extern "C" void spmv_csr_gpu(const int64_t *row_ptr, const int32_t *col_idx, const real *values, const real *x,
                             real *y, int64_t rows, int64_t cols, int64_t nnz, hipStream_t stream)
{
    (void)cols;
    (void)nnz;
    const unsigned blocks = (rows + ROWS - 1) / ROWS;
    multiply_rows<false><<<blocks, THREADS, 0, stream>>>(row_ptr, col_idx, values, x, y, rows);
}

#ifdef KC_ORACLE
extern "C" void spmv_csr_gpu_magnitude(const int64_t *row_ptr, const int32_t *col_idx, const real *values,
                                       const real *x, real *y, int64_t rows, int64_t cols, int64_t nnz,
                                       hipStream_t stream)
{
    (void)cols;
    (void)nnz;
    const unsigned blocks = (rows + ROWS - 1) / ROWS;
    multiply_rows<true><<<blocks, THREADS, 0, stream>>>(row_ptr, col_idx, values, x, y, rows);
}
#endif
