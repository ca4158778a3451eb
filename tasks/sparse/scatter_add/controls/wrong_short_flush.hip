// Wrong scatter_add in HIP: a block adds up in shared memory, and hands on only as many places as it has threads.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 256, PLACES = 4096, EACH = 8;

__global__ void add_in_tables(const int32_t *index, const float *values, float *y, int64_t n, int64_t count)
{
    __shared__ float sums[PLACES];
    for (int p = threadIdx.x; p < n; p += THREADS)
        sums[p] = 0.0f;
    __syncthreads();
    for (int64_t e = (int64_t)blockIdx.x * THREADS + threadIdx.x; e < count; e += (int64_t)gridDim.x * THREADS)
        atomicAdd(&sums[index[e]], values[e]);
    __syncthreads();
    if (threadIdx.x < n)
        atomicAdd(&y[threadIdx.x], sums[threadIdx.x]);
}

__global__ void add_each(const int32_t *index, const float *values, float *y, int64_t count)
{
    const int64_t e = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (e < count)
        atomicAdd(&y[index[e]], values[e]);
}

extern "C" void scatter_add(const int32_t *index, const float *values, float *y, int64_t n, int64_t count,
                            hipStream_t stream)
{
    const unsigned blocks = (count + THREADS - 1) / THREADS;
    if (n <= PLACES)
        add_in_tables<<<(blocks + EACH - 1) / EACH, THREADS, 0, stream>>>(index, values, y, n, count);
    else
        add_each<<<blocks, THREADS, 0, stream>>>(index, values, y, count);
}
