// Wrong scan_large in HIP: in the second launch each tile adds the last element of the tile before, as if blocks ran
// one after the other: what it finds there may lack what that tile has to add itself.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 256;

__global__ void scan_tiles(const float *x, float *out, int64_t n)
{
    __shared__ float sums[THREADS];
    const int me = threadIdx.x;
    const int64_t i = (int64_t)blockIdx.x * THREADS + me;
    sums[me] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (int distance = 1; distance < THREADS; distance *= 2) {
        const float other = me >= distance ? sums[me - distance] : 0.0f;
        __syncthreads();
        sums[me] += other;
        __syncthreads();
    }
    if (i < n)
        out[i] = sums[me];
}

__global__ void add_before(float *out, int64_t n)
{
    const int64_t i = ((int64_t)blockIdx.x + 1) * THREADS + threadIdx.x;
    const float before = out[((int64_t)blockIdx.x + 1) * THREADS - 1];
    if (i < n)
        out[i] += before;
}

extern "C" void scan_large(const float *x, float *out, int64_t n, hipStream_t stream)
{
    const int64_t tiles = (n + THREADS - 1) / THREADS;
    scan_tiles<<<tiles, THREADS, 0, stream>>>(x, out, n);
    if (tiles > 1)
        add_before<<<tiles - 1, THREADS, 0, stream>>>(out, n);
}
