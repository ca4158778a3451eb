// Baseline of segment_max: a block a segment; a tree in shared memory finds the largest value of its threads.
#include <hip/hip_runtime.h>
#include <stdint.h>
#ifndef real
#define real float
#endif

constexpr int THREADS = 128;

__global__ void max_each(const int64_t *first, const real *x, real *out, real start)
{
    __shared__ real part[THREADS];
    const int me = threadIdx.x;
    const int64_t end = first[blockIdx.x + 1];
    real best = start;
    for (int64_t i = first[blockIdx.x] + me; i < end; i += THREADS)
        best = fmax(best, x[i]);
    part[me] = best;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (me < half)
            part[me] = fmax(part[me], part[me + half]);
        __syncthreads();
    }
    if (me == 0)
        out[blockIdx.x] = part[0];
}

extern "C" void segment_max(const int64_t *first, const real *x, real *out, int64_t segments, int64_t n, real start,
                            hipStream_t stream)
{
    (void)n;
    max_each<<<segments, THREADS, 0, stream>>>(first, x, out, start);
}
