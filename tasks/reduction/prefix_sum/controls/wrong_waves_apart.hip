// Wrong prefix_sum in HIP: a wave adds the sum of the wave before it, and not of all waves before it.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 256, NARROWEST_WAVE = 32;

__device__ float scan_block(float value)
{
    __shared__ float of_wave[THREADS / NARROWEST_WAVE];
    const int lane = threadIdx.x % warpSize, wave = threadIdx.x / warpSize;
    for (int distance = 1; distance < warpSize; distance *= 2) {
        const float other = __shfl_up(value, distance);
        value += lane >= distance ? other : 0.0f;
    }
    if (lane == warpSize - 1)
        of_wave[wave] = value;
    __syncthreads();
    const float before = wave > 0 ? of_wave[wave - 1] : 0.0f;
    __syncthreads();
    return before + value;
}

__global__ void scan_in_one_block(const float *x, float *out, int64_t n)
{
    __shared__ float last;
    float before = 0.0f;
    for (int64_t first = 0; first < n; first += THREADS) {
        const int64_t i = first + threadIdx.x;
        const float sum = before + scan_block(i < n ? x[i] : 0.0f);
        if (i < n)
            out[i] = sum;
        if (threadIdx.x == THREADS - 1)
            last = sum;
        __syncthreads();
        before = last;
    }
}

extern "C" void prefix_sum(const float *x, float *out, int64_t n, hipStream_t stream)
{
    scan_in_one_block<<<1, THREADS, 0, stream>>>(x, out, n);
}
