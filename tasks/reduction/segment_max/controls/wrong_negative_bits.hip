// Wrong segment_max in HIP: an atomic maximum of floats' bits as integers, which orders negative floats backwards.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 64;

__global__ void max_each(const int64_t *first, const float *x, float *out, float start)
{
    __shared__ int best;
    if (threadIdx.x == 0)
        best = __float_as_int(start);
    __syncthreads();
    for (int64_t i = first[blockIdx.x] + threadIdx.x; i < first[blockIdx.x + 1]; i += THREADS)
        atomicMax(&best, __float_as_int(x[i]));
    __syncthreads();
    if (threadIdx.x == 0)
        out[blockIdx.x] = __int_as_float(best);
}

extern "C" void segment_max(const int64_t *first, const float *x, float *out, int64_t segments, int64_t n, float start,
                            hipStream_t stream)
{
    (void)n;
    max_each<<<segments, THREADS, 0, stream>>>(first, x, out, start);
}
