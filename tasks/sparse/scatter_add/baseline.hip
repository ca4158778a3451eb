// Baseline of scatter_add: one thread a value, and an atomic addition.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 256;

__global__ void add_each(const int32_t *index, const float *values, float *y, int64_t count)
{
    const int64_t e = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (e < count)
        atomicAdd(&y[index[e]], values[e]);
}

extern "C" void scatter_add(const int32_t *index, const float *values, float *y, int64_t n, int64_t count,
                            hipStream_t stream)
{
    (void)n;
    const unsigned blocks = (count + THREADS - 1) / THREADS;
    add_each<<<blocks, THREADS, 0, stream>>>(index, values, y, count);
}
