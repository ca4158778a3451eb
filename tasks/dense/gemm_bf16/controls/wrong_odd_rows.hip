// Wrong gemm_bf16 in HIP: numbers are taken two at a time, and the last one of an odd k is left out.
#include <hip/hip_bf16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int TILE = 16;

__global__ void multiply_each(const __hip_bfloat16 *A, const __hip_bfloat16 *B, float *C, int64_t m, int64_t n,
                              int64_t k)
{
    const int64_t across = (n + TILE - 1) / TILE;
    const int64_t i = blockIdx.x / across * TILE + threadIdx.y, j = blockIdx.x % across * TILE + threadIdx.x;
    if (i >= m || j >= n)
        return;
    float sum = 0.0f;
    for (int64_t p = 0; p + 1 < k; p += 2) {
        sum += __bfloat162float(A[i * k + p]) * __bfloat162float(B[p * n + j]);
        sum += __bfloat162float(A[i * k + p + 1]) * __bfloat162float(B[(p + 1) * n + j]);
    }
    C[i * n + j] = sum;
}

extern "C" void gemm_bf16(const __hip_bfloat16 *A, const __hip_bfloat16 *B, float *C, int64_t m, int64_t n, int64_t k,
                          hipStream_t stream)
{
    const unsigned blocks = (m + TILE - 1) / TILE * ((n + TILE - 1) / TILE);
    multiply_each<<<blocks, dim3(TILE, TILE), 0, stream>>>(A, B, C, m, n, k);
}
