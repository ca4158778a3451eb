// Baseline of histogram: each block counts a share of x in a table of its own in shared memory, then adds it to counts.
// Where there are too many bins for that, the threads add to counts itself.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 256;
constexpr int64_t EACH = 16, MOST_BLOCKS = 1024, MOST_BINS = 8192;

__global__ void count_in_tables(const int32_t *x, int32_t *counts, int64_t n, int bins)
{
    extern __shared__ int32_t table[];
    for (int b = threadIdx.x; b < bins; b += THREADS)
        table[b] = 0;
    __syncthreads();
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += (int64_t)gridDim.x * THREADS)
        atomicAdd(&table[x[i]], 1);
    __syncthreads();
    for (int b = threadIdx.x; b < bins; b += THREADS)
        if (table[b] > 0)
            atomicAdd(&counts[b], table[b]);
}

__global__ void count_in_place(const int32_t *x, int32_t *counts, int64_t n)
{
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += (int64_t)gridDim.x * THREADS)
        atomicAdd(&counts[x[i]], 1);
}

extern "C" void histogram(const int32_t *x, int32_t *counts, int64_t n, int64_t bins, hipStream_t stream)
{
    const int64_t share = THREADS * EACH, wanted = (n + share - 1) / share;
    const unsigned blocks = wanted < MOST_BLOCKS ? wanted : MOST_BLOCKS;
    (void)hipMemsetAsync(counts, 0, bins * sizeof *counts, stream);
    if (bins <= MOST_BINS)
        count_in_tables<<<blocks, THREADS, bins * sizeof *counts, stream>>>(x, counts, n, (int)bins);
    else
        count_in_place<<<blocks, THREADS, 0, stream>>>(x, counts, n);
}
