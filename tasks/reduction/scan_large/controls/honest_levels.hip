// Honest scan_large in HIP: tiles are scanned in place of the result, the scan of their sums is the same problem once
// more (on a vector a thousand times shorter), and is then added to the tiles.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 1024, NARROWEST_WAVE = 32;

__global__ void scan_tiles(const float *x, float *out, float *sums, int64_t n)
{
    __shared__ float of_wave[THREADS / NARROWEST_WAVE];
    const int lane = threadIdx.x % warpSize, wave = threadIdx.x / warpSize;
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    float sum = i < n ? x[i] : 0.0f;
    for (int distance = 1; distance < warpSize; distance *= 2) {
        const float other = __shfl_up(sum, distance);
        sum += lane >= distance ? other : 0.0f;
    }
    if (lane == warpSize - 1)
        of_wave[wave] = sum;
    __syncthreads();
    float before = 0.0f;
    for (int w = 0; w < wave; w++)
        before += of_wave[w];
    if (i < n)
        out[i] = before + sum;
    if (threadIdx.x == THREADS - 1)
        sums[blockIdx.x] = before + sum;
}

__global__ void add_sums(float *out, const float *sums, int64_t n)
{
    const int64_t i = ((int64_t)blockIdx.x + 1) * THREADS + threadIdx.x;
    if (i < n)
        out[i] += sums[blockIdx.x];
}

// `sums` has room for the sums of this level and of those above it, one behind the other.
static void scan(const float *x, float *out, float *sums, int64_t n, hipStream_t stream)
{
    const int64_t tiles = (n + THREADS - 1) / THREADS;
    scan_tiles<<<tiles, THREADS, 0, stream>>>(x, out, sums, n);
    if (tiles == 1)
        return;
    scan(sums, sums, sums + tiles, tiles, stream);
    add_sums<<<tiles - 1, THREADS, 0, stream>>>(out, sums, n);
}

extern "C" void scan_large(const float *x, float *out, int64_t n, hipStream_t stream)
{
    int64_t room = 0;
    for (int64_t left = n; left > 0; left = left > 1 ? (left + THREADS - 1) / THREADS : 0)
        room += (left + THREADS - 1) / THREADS;
    float *sums;
    if (hipMallocAsync((void **)&sums, room * sizeof *sums, stream) != hipSuccess)
        return;
    scan(x, out, sums, n, stream);
    (void)hipFreeAsync(sums, stream);
}
