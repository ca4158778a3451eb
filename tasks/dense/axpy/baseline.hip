// Baseline of axpy: one thread an element.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 256;

__global__ void scale_and_add(const float *x, const float *y, float *out, int64_t n, float a)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < n)
        out[i] = a * x[i] + y[i];
}

extern "C" void axpy(const float *x, const float *y, float *out, int64_t n, float a, hipStream_t stream)
{
    const unsigned blocks = (n + THREADS - 1) / THREADS;
    scale_and_add<<<blocks, THREADS, 0, stream>>>(x, y, out, n, a);
}
