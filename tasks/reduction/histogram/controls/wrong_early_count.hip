// Wrong histogram in HIP: threads count before the others have cleared their part of the table; a barrier is missing.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 256;

__global__ void count_in_tables(const int32_t *x, int32_t *counts, int64_t n, int bins)
{
    extern __shared__ int32_t table[];
    for (int b = threadIdx.x; b < bins; b += THREADS)
        table[b] = 0;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += (int64_t)gridDim.x * THREADS)
        atomicAdd(&table[x[i]], 1);
    __syncthreads();
    for (int b = threadIdx.x; b < bins; b += THREADS)
        atomicAdd(&counts[b], table[b]);
}

extern "C" void histogram(const int32_t *x, int32_t *counts, int64_t n, int64_t bins, hipStream_t stream)
{
    const unsigned blocks = n < 16 * THREADS ? 1 : 16;
    (void)hipMemsetAsync(counts, 0, bins * sizeof *counts, stream);
    count_in_tables<<<blocks, THREADS, bins * sizeof *counts, stream>>>(x, counts, n, (int)bins);
}
