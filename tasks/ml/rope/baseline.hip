// Baseline of rope: a thread a pair of elements.
#include <hip/hip_runtime.h>
#include <stdint.h>

#ifndef real
#define real float
#endif

constexpr int THREADS = 256;

__global__ void turn_pairs(const real *x, const real *cosine, const real *sine, real *out, int64_t pairs,
                           int64_t heads, int64_t half)
{
    const int64_t pair = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (pair >= pairs)
        return;
    const int64_t i = pair % half, head = pair / half, t = head / heads;
    const int64_t low = head * 2 * half + i, high = low + half;
    const real along = cosine[t * half + i], across = sine[t * half + i];
    out[low] = x[low] * along - x[high] * across;
    out[high] = x[high] * along + x[low] * across;
}

extern "C" void rope(const real *x, const real *cosine, const real *sine, real *out, int64_t tokens, int64_t heads,
                     int64_t half, hipStream_t stream)
{
    const int64_t pairs = tokens * heads * half;
    turn_pairs<<<(pairs + THREADS - 1) / THREADS, THREADS, 0, stream>>>(x, cosine, sine, out, pairs, heads, half);
}

#ifdef KC_ORACLE
__global__ void add_up_magnitudes(const real *x, const real *cosine, const real *sine, real *out, int64_t pairs,
                                  int64_t heads, int64_t half)
{
    const int64_t pair = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (pair >= pairs)
        return;
    const int64_t i = pair % half, head = pair / half, t = head / heads;
    const int64_t low = head * 2 * half + i, high = low + half;
    const real along = cosine[t * half + i], across = sine[t * half + i];
    out[low] = fabs(x[low] * along) + fabs(x[high] * across);
    out[high] = fabs(x[high] * along) + fabs(x[low] * across);
}

extern "C" void rope_magnitude(const real *x, const real *cosine, const real *sine, real *out, int64_t tokens,
                               int64_t heads, int64_t half, hipStream_t stream)
{
    const int64_t pairs = tokens * heads * half;
    const unsigned blocks = (pairs + THREADS - 1) / THREADS;
    add_up_magnitudes<<<blocks, THREADS, 0, stream>>>(x, cosine, sine, out, pairs, heads, half);
}
#endif
