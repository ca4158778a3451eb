// Honest gemm_bf16 in HIP: the lanes of a wave share an element's products and add them up by shuffles; two numbers
// are read as one word where the row of A allows it.
#include <hip/hip_bf16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>
#include <string.h>

constexpr int THREADS = 256;

__device__ float upper_half(unsigned bits)
{
    float x;
    bits &= 0xffff0000u;
    memcpy(&x, &bits, sizeof x);
    return x;
}

__device__ float wave_sum(float value)
{
    for (int distance = warpSize / 2; distance > 0; distance /= 2)
        value += __shfl_xor(value, distance);
    return value;
}

// What this lane adds to the product of a row and a column.
__device__ float part(const __hip_bfloat16 *row, const __hip_bfloat16 *column, int64_t n, int64_t k)
{
    const bool in_words = (uintptr_t)row % sizeof(unsigned) == 0;
    const int64_t pairs = in_words ? k / 2 : 0;
    const int lane = threadIdx.x % warpSize;
    float even = 0.0f, odd = 0.0f;
    for (int64_t pair = lane; pair < pairs; pair += warpSize) {
        const unsigned word = ((const unsigned *)row)[pair];
        even += upper_half(word << 16) * __bfloat162float(column[2 * pair * n]);
        odd += upper_half(word) * __bfloat162float(column[(2 * pair + 1) * n]);
    }
    for (int64_t p = 2 * pairs + lane; p < k; p += warpSize)
        even += __bfloat162float(row[p]) * __bfloat162float(column[p * n]);
    return even + odd;
}

__global__ void multiply_each(const __hip_bfloat16 *A, const __hip_bfloat16 *B, float *C, int64_t m, int64_t n,
                              int64_t k)
{
    const int64_t waves = (int64_t)gridDim.x * (THREADS / warpSize);
    const int64_t me = (int64_t)blockIdx.x * (THREADS / warpSize) + threadIdx.x / warpSize;
    for (int64_t e = me; e < m * n; e += waves) {
        const float sum = wave_sum(part(A + e / n * k, B + e % n, n, k));
        if (threadIdx.x % warpSize == 0)
            C[e] = sum;
    }
}

extern "C" void gemm_bf16(const __hip_bfloat16 *A, const __hip_bfloat16 *B, float *C, int64_t m, int64_t n, int64_t k,
                          hipStream_t stream)
{
    const int64_t wanted = (m * n + 3) / 4, most = 65536;
    multiply_each<<<wanted < most ? wanted : most, THREADS, 0, stream>>>(A, B, C, m, n, k);
}
