// Baseline of prefix_sum: three launches, with the sums between tiles kept in `out` itself. Every block scans a tile;
// one block scans the tiles' last elements; every block adds to its tile what came before.
#include <hip/hip_runtime.h>
#include <stdint.h>
#ifndef real
#define real float
#endif

constexpr int THREADS = 256, EACH = 8, TILE = THREADS * EACH;

// The sums of `value` over the threads up to each one, in `sums`.
__device__ void scan_block(real value, real *sums)
{
    const int me = threadIdx.x;
    sums[me] = value;
    __syncthreads();
    for (int distance = 1; distance < THREADS; distance *= 2) {
        const real other = me >= distance ? sums[me - distance] : 0;
        __syncthreads();
        sums[me] += other;
        __syncthreads();
    }
}

__global__ void scan_tiles(const real *x, real *out, int64_t n)
{
    __shared__ real tile[TILE], sums[THREADS];
    const int64_t first = (int64_t)blockIdx.x * TILE;
    const int me = threadIdx.x;
    for (int e = me; e < TILE; e += THREADS)
        tile[e] = first + e < n ? x[first + e] : 0;
    __syncthreads();
    real own = 0;
    for (int e = me * EACH; e < (me + 1) * EACH; e++)
        own += tile[e];
    scan_block(own, sums);

    real running = me > 0 ? sums[me - 1] : 0;
    for (int e = me * EACH; e < (me + 1) * EACH; e++) {
        running += tile[e];
        tile[e] = running;
    }
    __syncthreads();
    for (int e = me; e < TILE && first + e < n; e += THREADS)
        out[first + e] = tile[e];
}

__global__ void scan_ends(real *out, int64_t n, int64_t tiles)
{
    __shared__ real sums[THREADS];
    real before = 0;
    for (int64_t first = 0; first < tiles; first += THREADS) {
        const int64_t t = first + threadIdx.x;
        const int64_t end = t < tiles - 1 ? (t + 1) * TILE - 1 : n - 1;
        scan_block(t < tiles ? out[end] : 0, sums);
        if (t < tiles)
            out[end] = before + sums[threadIdx.x];
        before += sums[THREADS - 1];
        __syncthreads();
    }
}

// All but the tile's last element, which holds its final value; the first tile has nothing before it.
__global__ void add_before(real *out, int64_t n)
{
    const int64_t first = ((int64_t)blockIdx.x + 1) * TILE;
    const int64_t last = first + TILE < n ? first + TILE - 1 : n - 1;
    const real before = out[first - 1];
    for (int64_t i = first + threadIdx.x; i < last; i += THREADS)
        out[i] += before;
}

extern "C" void prefix_sum(const real *x, real *out, int64_t n, hipStream_t stream)
{
    const int64_t tiles = (n + TILE - 1) / TILE;
    scan_tiles<<<tiles, THREADS, 0, stream>>>(x, out, n);
    if (tiles == 1)
        return;
    scan_ends<<<1, THREADS, 0, stream>>>(out, n, tiles);
    add_before<<<tiles - 1, THREADS, 0, stream>>>(out, n);
}

#ifdef KC_ORACLE
__global__ void take_magnitudes(const real *x, real *out, int64_t n)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < n)
        out[i] = fabs(x[i]);
}

// The scan works in place, too: a block has read its tile before it writes it.
extern "C" void prefix_sum_magnitude(const real *x, real *out, int64_t n, hipStream_t stream)
{
    take_magnitudes<<<(n + THREADS - 1) / THREADS, THREADS, 0, stream>>>(x, out, n);
    prefix_sum(out, out, n, stream);
}
#endif
