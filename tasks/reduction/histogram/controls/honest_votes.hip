// Honest histogram in HIP: the lanes of a wave vote on who holds the same value, and one of them adds their number.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 256;
constexpr int64_t MOST_BLOCKS = 1024;

__global__ void clear(int32_t *counts, int64_t bins)
{
    for (int64_t b = (int64_t)blockIdx.x * THREADS + threadIdx.x; b < bins; b += (int64_t)gridDim.x * THREADS)
        counts[b] = 0;
}

// One bin a lane, -1 for none; all lanes of the wave take part until no bin waits.
__device__ void count_wave(int bin, int32_t *counts)
{
    const int lane = threadIdx.x % warpSize;
    unsigned long long waiting = __ballot(bin >= 0);
    while (waiting) {
        const int leader = __ffsll(waiting) - 1;
        const int chosen = __shfl(bin, leader);
        const unsigned long long alike = __ballot(bin == chosen);
        if (lane == leader)
            atomicAdd(&counts[chosen], __popcll(alike));
        waiting &= ~alike;
    }
}

__global__ void count(const int32_t *x, int32_t *counts, int64_t n)
{
    for (int64_t first = (int64_t)blockIdx.x * THREADS; first < n; first += (int64_t)gridDim.x * THREADS) {
        const int64_t i = first + threadIdx.x;
        count_wave(i < n ? x[i] : -1, counts);
    }
}

extern "C" void histogram(const int32_t *x, int32_t *counts, int64_t n, int64_t bins, hipStream_t stream)
{
    const int64_t wanted = (n + THREADS - 1) / THREADS;
    const unsigned blocks = wanted < MOST_BLOCKS ? wanted : MOST_BLOCKS;
    clear<<<64, THREADS, 0, stream>>>(counts, bins);
    count<<<blocks, THREADS, 0, stream>>>(x, counts, n);
}
