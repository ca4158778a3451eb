// Baseline of prefix_sum: three launches, with the sums between tiles kept in `out` itself. Every block scans a tile;
// one block scans the tiles' last elements; every block adds to its tile what came before.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 256, EACH = 8, TILE = THREADS * EACH;

// The sums of `value` over the threads up to each one, in `sums`.
__device__ void scan_block(float value, float *sums)
{
    const int me = threadIdx.x;
    sums[me] = value;
    __syncthreads();
    for (int distance = 1; distance < THREADS; distance *= 2) {
        const float other = me >= distance ? sums[me - distance] : 0.0f;
        __syncthreads();
        sums[me] += other;
        __syncthreads();
    }
}

__global__ void scan_tiles(const float *x, float *out, int64_t n)
{
    __shared__ float tile[TILE], sums[THREADS];
    const int64_t first = (int64_t)blockIdx.x * TILE;
    const int me = threadIdx.x;
    for (int e = me; e < TILE; e += THREADS)
        tile[e] = first + e < n ? x[first + e] : 0.0f;
    __syncthreads();
    float own = 0.0f;
    for (int e = me * EACH; e < (me + 1) * EACH; e++)
        own += tile[e];
    scan_block(own, sums);

    float running = me > 0 ? sums[me - 1] : 0.0f;
    for (int e = me * EACH; e < (me + 1) * EACH; e++) {
        running += tile[e];
        tile[e] = running;
    }
    __syncthreads();
    for (int e = me; e < TILE && first + e < n; e += THREADS)
        out[first + e] = tile[e];
}

__global__ void scan_ends(float *out, int64_t n, int64_t tiles)
{
    __shared__ float sums[THREADS];
    float before = 0.0f;
    for (int64_t first = 0; first < tiles; first += THREADS) {
        const int64_t t = first + threadIdx.x;
        const int64_t end = t < tiles - 1 ? (t + 1) * TILE - 1 : n - 1;
        scan_block(t < tiles ? out[end] : 0.0f, sums);
        if (t < tiles)
            out[end] = before + sums[threadIdx.x];
        before += sums[THREADS - 1];
        __syncthreads();
    }
}

// All but the tile's last element, which holds its final value; the first tile has nothing before it.
__global__ void add_before(float *out, int64_t n)
{
    const int64_t first = ((int64_t)blockIdx.x + 1) * TILE;
    const int64_t last = first + TILE < n ? first + TILE - 1 : n - 1;
    const float before = out[first - 1];
    for (int64_t i = first + threadIdx.x; i < last; i += THREADS)
        out[i] += before;
}

extern "C" void prefix_sum(const float *x, float *out, int64_t n, hipStream_t stream)
{
    const int64_t tiles = (n + TILE - 1) / TILE;
    scan_tiles<<<tiles, THREADS, 0, stream>>>(x, out, n);
    if (tiles == 1)
        return;
    scan_ends<<<1, THREADS, 0, stream>>>(out, n, tiles);
    add_before<<<tiles - 1, THREADS, 0, stream>>>(out, n);
}
