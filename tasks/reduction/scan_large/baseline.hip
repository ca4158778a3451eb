// Baseline of scan_large: three launches. Blocks add up shares of x, one block scans these sums, and blocks scan their
// shares from what came before. The sums wait in the last element of each share of `out`.
#include <hip/hip_runtime.h>
#include <stdint.h>

#ifndef real
#define real float
#endif

constexpr int THREADS = 256, EACH = 4, TILE = THREADS * EACH;
constexpr int64_t MOST_SHARES = 1024;

// What is added up: the elements, or their magnitudes.
template <bool IS_MAGNITUDE> __device__ real term(const real *x, int64_t i, int64_t end)
{
    const real value = i < end ? x[i] : 0;
    return IS_MAGNITUDE ? fabs(value) : value;
}

// The sum of `value` over the threads before this one; `total` is that over the block.
__device__ real block_scan(real value, real *total)
{
    __shared__ real sums[THREADS];
    const int me = threadIdx.x;
    sums[me] = value;
    __syncthreads();
    for (int distance = 1; distance < THREADS; distance *= 2) {
        const real other = me >= distance ? sums[me - distance] : 0;
        __syncthreads();
        sums[me] += other;
        __syncthreads();
    }
    const real before = me > 0 ? sums[me - 1] : 0;
    *total = sums[THREADS - 1];
    __syncthreads(); // `sums` is used again
    return before;
}

template <bool IS_MAGNITUDE> __global__ void add_up_shares(const real *x, real *out, int64_t n, int64_t share)
{
    const int64_t first = blockIdx.x * share, end = first + share < n ? first + share : n;
    real own = 0, total;
    for (int64_t i = first + threadIdx.x; i < end; i += THREADS)
        own += term<IS_MAGNITUDE>(x, i, end);
    block_scan(own, &total);
    if (threadIdx.x == 0)
        out[end - 1] = total;
}

__global__ void scan_sums(real *out, int64_t n, int64_t share, int64_t shares)
{
    real before = 0, total;
    for (int64_t first = 0; first < shares; first += THREADS) {
        const int64_t s = first + threadIdx.x;
        const int64_t last = s < shares - 1 ? (s + 1) * share - 1 : n - 1;
        const real own = s < shares ? out[last] : 0;
        const real sum = before + block_scan(own, &total) + own;
        if (s < shares)
            out[last] = sum;
        before += total;
    }
}

// A thread has EACH neighbouring elements of a tile; the share's last element is there already.
template <bool IS_MAGNITUDE> __global__ void scan_shares(const real *x, real *out, int64_t n, int64_t share)
{
    const int64_t first = blockIdx.x * share, end = first + share < n ? first + share : n;
    real before = first > 0 ? out[first - 1] : 0;
    for (int64_t tile = first; tile < end; tile += TILE) {
        const int64_t mine = tile + threadIdx.x * EACH;
        real terms[EACH], own = 0, total;
        for (int e = 0; e < EACH; e++)
            own += terms[e] = term<IS_MAGNITUDE>(x, mine + e, end);
        real running = before + block_scan(own, &total);
        for (int e = 0; e < EACH; e++) {
            running += terms[e];
            if (mine + e < end - 1)
                out[mine + e] = running;
        }
        before += total;
    }
}

template <bool IS_MAGNITUDE> void scan(const real *x, real *out, int64_t n, hipStream_t stream)
{
    const int64_t tiles = (n + TILE - 1) / TILE;
    const int64_t share = (tiles + MOST_SHARES - 1) / MOST_SHARES * TILE;
    const int64_t shares = (n + share - 1) / share;
    add_up_shares<IS_MAGNITUDE><<<shares, THREADS, 0, stream>>>(x, out, n, share);
    scan_sums<<<1, THREADS, 0, stream>>>(out, n, share, shares);
    scan_shares<IS_MAGNITUDE><<<shares, THREADS, 0, stream>>>(x, out, n, share);
}

extern "C" void scan_large(const real *x, real *out, int64_t n, hipStream_t stream)
{
    scan<false>(x, out, n, stream);
}

#ifdef KC_ORACLE
extern "C" void scan_large_magnitude(const real *x, real *out, int64_t n, hipStream_t stream)
{
    scan<true>(x, out, n, stream);
}
#endif
