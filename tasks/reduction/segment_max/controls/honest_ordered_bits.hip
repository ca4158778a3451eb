// Honest segment_max in HIP: a thread takes a run of values, whatever segments they are in, and gives each segment's
// largest to an atomic maximum of integers. Bits of floats are put so that they are ordered as the floats are.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 256;
constexpr int64_t RUN = 16;

// Its own inverse: of negative floats, all bits but the sign are turned round.
__device__ int ordered(int bits)
{
    return bits < 0 ? bits ^ 0x7fffffff : bits;
}

__global__ void fill(int *out, int64_t segments, float start)
{
    const int64_t s = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (s < segments)
        out[s] = ordered(__float_as_int(start));
}

// The segment that holds value i: the last one that starts at or before it.
__device__ int64_t segment_of(const int64_t *first, int64_t segments, int64_t i)
{
    int64_t low = 0, high = segments;
    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        if (first[middle] <= i)
            low = middle;
        else
            high = middle;
    }
    return low;
}

__global__ void max_runs(const int64_t *first, const float *x, int *out, int64_t segments, int64_t n)
{
    int64_t i = RUN * ((int64_t)blockIdx.x * THREADS + threadIdx.x);
    const int64_t end = i + RUN < n ? i + RUN : n;
    if (i >= n)
        return;
    for (int64_t s = segment_of(first, segments, i); i < end; s++) {
        const int64_t stop = first[s + 1] < end ? first[s + 1] : end;
        if (i == stop)
            continue;
        float best = x[i];
        for (i++; i < stop; i++)
            best = fmaxf(best, x[i]);
        atomicMax(&out[s], ordered(__float_as_int(best)));
    }
}

__global__ void as_floats(int *out, int64_t segments)
{
    const int64_t s = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (s < segments)
        out[s] = ordered(out[s]);
}

extern "C" void segment_max(const int64_t *first, const float *x, float *out, int64_t segments, int64_t n, float start,
                            hipStream_t stream)
{
    const unsigned blocks = (segments + THREADS - 1) / THREADS;
    const int64_t each = THREADS * RUN;
    int *bits = reinterpret_cast<int *>(out);
    fill<<<blocks, THREADS, 0, stream>>>(bits, segments, start);
    max_runs<<<(n + each - 1) / each, THREADS, 0, stream>>>(first, x, bits, segments, n);
    as_floats<<<blocks, THREADS, 0, stream>>>(bits, segments);
}
