// Honest prefix_sum in HIP: at most 256 long shares of x are added up first; one block scans these sums; then each
// block scans its share, by shuffles, starting from what came before. The sums wait in each share's last element.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 256, NARROWEST_WAVE = 32;

// The sum of `value` over the threads up to this one; `total` is that over the block.
__device__ float scan_block(float value, float &total)
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
    float before = 0.0f;
    total = 0.0f;
    for (int w = 0; w < THREADS / warpSize; w++) {
        before += w < wave ? of_wave[w] : 0.0f;
        total += of_wave[w];
    }
    __syncthreads();
    return before + value;
}

__global__ void add_up_shares(const float *x, float *out, int64_t n, int64_t share)
{
    const int64_t first = blockIdx.x * share, end = first + share < n ? first + share : n;
    float own = 0.0f, total;
    for (int64_t i = first + threadIdx.x; i < end; i += THREADS)
        own += x[i];
    scan_block(own, total);
    if (threadIdx.x == 0)
        out[end - 1] = total;
}

__global__ void scan_sums(float *out, int64_t n, int64_t share)
{
    const int64_t first = threadIdx.x * share, end = first + share < n ? first + share : n;
    float total;
    const float sum = scan_block(first < n ? out[end - 1] : 0.0f, total);
    if (first < n)
        out[end - 1] = sum;
}

__global__ void scan_shares(const float *x, float *out, int64_t n, int64_t share)
{
    const int64_t first = blockIdx.x * share, end = first + share < n ? first + share : n;
    float before = first > 0 ? out[first - 1] : 0.0f;
    for (int64_t at = first; at < end - 1; at += THREADS) {
        const int64_t i = at + threadIdx.x;
        float total;
        const float sum = scan_block(i < end ? x[i] : 0.0f, total);
        if (i < end - 1)
            out[i] = before + sum;
        before += total;
    }
}

extern "C" void prefix_sum(const float *x, float *out, int64_t n, hipStream_t stream)
{
    const int64_t pieces = (n + THREADS - 1) / THREADS; // of one element a thread
    const int64_t share = (pieces + THREADS - 1) / THREADS * THREADS;
    const unsigned blocks = (n + share - 1) / share;
    add_up_shares<<<blocks, THREADS, 0, stream>>>(x, out, n, share);
    scan_sums<<<1, THREADS, 0, stream>>>(out, n, share);
    scan_shares<<<blocks, THREADS, 0, stream>>>(x, out, n, share);
}
