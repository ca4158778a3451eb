// Honest gemm_bf16 in HIP: a thread owns a column of B in a band of eight rows of A, which stay as they are, in shared
// memory; B is read once a band, straight from memory.
#include <hip/hip_bf16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int ROWS = 8, COLUMNS = 128, DEPTH = 64;

// Part of A, ROWS by DEPTH; zero outside of A.
__device__ void load_a(__hip_bfloat16 (*a)[DEPTH], const __hip_bfloat16 *A, int64_t top, int64_t first, int64_t m,
                       int64_t k)
{
    for (int e = threadIdx.x; e < ROWS * DEPTH; e += COLUMNS) {
        const int row = e / DEPTH, p = e % DEPTH;
        const bool inside = top + row < m && first + p < k;
        a[row][p] = inside ? A[(top + row) * k + first + p] : __float2bfloat16(0.0f);
    }
}

__global__ __launch_bounds__(COLUMNS) void multiply_bands(const __hip_bfloat16 *A, const __hip_bfloat16 *B, float *C,
                                                          int64_t m, int64_t n, int64_t k)
{
    __shared__ __hip_bfloat16 a[ROWS][DEPTH];
    const int64_t across = (n + COLUMNS - 1) / COLUMNS;
    const int64_t top = blockIdx.x / across * ROWS, j = blockIdx.x % across * COLUMNS + threadIdx.x;
    float sum[ROWS] = {};
    for (int64_t first = 0; first < k; first += DEPTH) {
        load_a(a, A, top, first, m, k);
        __syncthreads();
        const int deep = k - first < DEPTH ? k - first : DEPTH;
        for (int p = 0; p < deep && j < n; p++) {
            const float b = __bfloat162float(B[(first + p) * n + j]);
            for (int row = 0; row < ROWS; row++)
                sum[row] = fmaf(__bfloat162float(a[row][p]), b, sum[row]);
        }
        __syncthreads();
    }
    for (int row = 0; row < ROWS; row++)
        if (top + row < m && j < n)
            C[(top + row) * n + j] = sum[row];
}

extern "C" void gemm_bf16(const __hip_bfloat16 *A, const __hip_bfloat16 *B, float *C, int64_t m, int64_t n, int64_t k,
                          hipStream_t stream)
{
    const unsigned blocks = (m + ROWS - 1) / ROWS * ((n + COLUMNS - 1) / COLUMNS);
    multiply_bands<<<blocks, COLUMNS, 0, stream>>>(A, B, C, m, n, k);
}
