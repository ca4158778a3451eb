// Baseline of scatter_add: one thread a value, and an atomic addition.
#include <hip/hip_runtime.h>
#include <stdint.h>
#ifndef real
#define real float
#endif

constexpr int THREADS = 256;

__global__ void add_each(const int32_t *index, const real *values, real *y, int64_t count)
{
    const int64_t e = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (e < count)
        atomicAdd(&y[index[e]], values[e]);
}

extern "C" void scatter_add(const int32_t *index, const real *values, real *y, int64_t n, int64_t count,
                            hipStream_t stream)
{
    (void)n;
    const unsigned blocks = (count + THREADS - 1) / THREADS;
    add_each<<<blocks, THREADS, 0, stream>>>(index, values, y, count);
}

#ifdef KC_ORACLE
__global__ void take_magnitudes(real *y, int64_t n)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < n)
        y[i] = fabs(y[i]);
}

__global__ void add_magnitudes(const int32_t *index, const real *values, real *y, int32_t *added, int64_t count)
{
    const int64_t e = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (e < count) {
        atomicAdd(&y[index[e]], fabs(values[e]));
        atomicAdd(&added[index[e]], 1);
    }
}

__global__ void grow_by_terms(real *y, const int32_t *added, int64_t n)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < n)
        y[i] *= sqrt((real)1 + (real)added[i]);
}

// Where memory is short, the runtime keeps the error for the caller to see.
extern "C" void scatter_add_magnitude(const int32_t *index, const real *values, real *y, int64_t n, int64_t count,
                                      hipStream_t stream)
{
    const unsigned places = (n + THREADS - 1) / THREADS, blocks = (count + THREADS - 1) / THREADS;
    int32_t *added;
    if (hipMalloc((void **)&added, n * sizeof *added) != hipSuccess)
        return;
    (void)hipMemsetAsync(added, 0, n * sizeof *added, stream);
    take_magnitudes<<<places, THREADS, 0, stream>>>(y, n);
    add_magnitudes<<<blocks, THREADS, 0, stream>>>(index, values, y, added, count);
    grow_by_terms<<<places, THREADS, 0, stream>>>(y, added, n);
    (void)hipStreamSynchronize(stream);
    (void)hipFree(added);
}
#endif
