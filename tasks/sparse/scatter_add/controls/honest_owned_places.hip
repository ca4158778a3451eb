// Honest scatter_add in HIP: a block owns 4096 places, reads the whole index, and adds its own part in shared memory.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 512, PLACES = 4096;

__global__ void add_own(const int32_t *index, const float *values, float *y, int64_t n, int64_t count)
{
    __shared__ float sums[PLACES];
    const int64_t first = (int64_t)blockIdx.x * PLACES;
    const int own = n - first < PLACES ? (int)(n - first) : PLACES;
    for (int p = threadIdx.x; p < own; p += THREADS)
        sums[p] = y[first + p];
    __syncthreads();
    for (int64_t e = threadIdx.x; e < count; e += THREADS) {
        const int64_t p = index[e] - first;
        if (p >= 0 && p < own)
            atomicAdd(&sums[p], values[e]);
    }
    __syncthreads();
    for (int p = threadIdx.x; p < own; p += THREADS)
        y[first + p] = sums[p];
}

extern "C" void scatter_add(const int32_t *index, const float *values, float *y, int64_t n, int64_t count,
                            hipStream_t stream)
{
    const unsigned blocks = (n + PLACES - 1) / PLACES;
    add_own<<<blocks, THREADS, 0, stream>>>(index, values, y, n, count);
}
