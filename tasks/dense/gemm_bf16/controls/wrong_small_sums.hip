// Wrong gemm_bf16 in HIP: sums are kept in bfloat16, and lose what is added to them.
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
    __hip_bfloat16 sum = __float2bfloat16(0.0f);
    for (int64_t p = 0; p < k; p++)
        sum = __hfma(A[i * k + p], B[p * n + j], sum);
    C[i * n + j] = __bfloat162float(sum);
}

extern "C" void gemm_bf16(const __hip_bfloat16 *A, const __hip_bfloat16 *B, float *C, int64_t m, int64_t n, int64_t k,
                          hipStream_t stream)
{
    const unsigned blocks = (m + TILE - 1) / TILE * ((n + TILE - 1) / TILE);
    multiply_each<<<blocks, dim3(TILE, TILE), 0, stream>>>(A, B, C, m, n, k);
}
