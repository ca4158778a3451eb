// Wrong gelu in HIP: elements are taken in fours, and nobody takes the last n % 4.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 128;

__device__ float gelu_of(float x)
{
    return 0.5f * x * (1.0f + erff(x * 0.70710678118654752440f));
}

__global__ void gelu_quads(const float4 *x, float4 *out, int64_t quads)
{
    const int64_t q = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (q < quads)
        out[q] = make_float4(gelu_of(x[q].x), gelu_of(x[q].y), gelu_of(x[q].z), gelu_of(x[q].w));
}

extern "C" void gelu(const float *x, float *out, int64_t n, hipStream_t stream)
{
    const unsigned blocks = (n / 4 + THREADS) / THREADS;
    gelu_quads<<<blocks, THREADS, 0, stream>>>((const float4 *)x, (float4 *)out, n / 4);
}
