// Baseline of axpy: one thread an element.
#include <hip/hip_runtime.h>
#include <stdint.h>
#ifndef real
#define real float
#endif

constexpr int THREADS = 256;

__global__ void scale_and_add(const real *x, const real *y, real *out, int64_t n, real a)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < n)
        out[i] = a * x[i] + y[i];
}

extern "C" void axpy(const real *x, const real *y, real *out, int64_t n, real a, hipStream_t stream)
{
    const unsigned blocks = (n + THREADS - 1) / THREADS;
    scale_and_add<<<blocks, THREADS, 0, stream>>>(x, y, out, n, a);
}

#ifdef KC_ORACLE
__global__ void add_magnitudes(const real *x, const real *y, real *out, int64_t n, real a)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < n)
        out[i] = fabs(a * x[i]) + fabs(y[i]);
}

extern "C" void axpy_magnitude(const real *x, const real *y, real *out, int64_t n, real a, hipStream_t stream)
{
    const unsigned blocks = (n + THREADS - 1) / THREADS;
    add_magnitudes<<<blocks, THREADS, 0, stream>>>(x, y, out, n, a);
}
#endif
