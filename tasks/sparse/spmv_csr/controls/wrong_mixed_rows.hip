// Wrong spmv_csr in HIP: 32 lanes a row, and sums over all lanes of a wave: of 64 lanes, two rows are mixed up; right
// on waves of 32.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int LANES = 32, ROWS = 4;

__global__ void multiply_rows(const int64_t *row_ptr, const int32_t *col_idx, const float *values, const float *x,
                              float *y, int64_t rows)
{
    const int64_t r = (int64_t)blockIdx.x * ROWS + threadIdx.y;
    float sum = 0.0f;
    if (r < rows)
        for (int64_t e = row_ptr[r] + threadIdx.x; e < row_ptr[r + 1]; e += LANES)
            sum += values[e] * x[col_idx[e]];
    for (int distance = warpSize / 2; distance > 0; distance /= 2)
        sum += __shfl_xor(sum, distance);
    if (r < rows && threadIdx.x == 0)
        y[r] = sum;
}

extern "C" void spmv_csr(const int64_t *row_ptr, const int32_t *col_idx, const float *values, const float *x, float *y,
                         int64_t rows, int64_t cols, int64_t nnz, hipStream_t stream)
{
    (void)cols;
    (void)nnz;
    const unsigned blocks = (rows + ROWS - 1) / ROWS;
    multiply_rows<<<blocks, dim3(LANES, ROWS), 0, stream>>>(row_ptr, col_idx, values, x, y, rows);
}
