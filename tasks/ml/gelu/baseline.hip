// Baseline of gelu: one thread an element, erf of the device library.
#include <hip/hip_runtime.h>
#include <stdint.h>
#ifndef real
#define real float
#endif

constexpr int THREADS = 256;
constexpr real INVERSE_ROOT_2 = (real)0.70710678118654752440;

__global__ void gelu_each(const real *x, real *out, int64_t n)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < n)
        out[i] = (real)0.5 * x[i] * ((real)1 + erf(x[i] * INVERSE_ROOT_2));
}

extern "C" void gelu(const real *x, real *out, int64_t n, hipStream_t stream)
{
    const unsigned blocks = (n + THREADS - 1) / THREADS;
    gelu_each<<<blocks, THREADS, 0, stream>>>(x, out, n);
}

#ifdef KC_ORACLE
__global__ void magnitude_each(const real *x, real *out, int64_t n)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < n)
        out[i] = (real)0.5 * fabs(x[i]) * ((real)1 + fabs(erf(x[i] * INVERSE_ROOT_2)));
}

extern "C" void gelu_magnitude(const real *x, real *out, int64_t n, hipStream_t stream)
{
    const unsigned blocks = (n + THREADS - 1) / THREADS;
    magnitude_each<<<blocks, THREADS, 0, stream>>>(x, out, n);
}
#endif
