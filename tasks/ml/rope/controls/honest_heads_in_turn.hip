// Honest rope in HIP: a thread keeps the cosine and sine of a token's pair and goes through all heads with them.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 128;

__global__ void turn_heads(const float *x, const float *cosine, const float *sine, float *out, int64_t angles,
                           int64_t heads, int64_t half)
{
    const int64_t angle = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (angle >= angles)
        return;
    const int64_t t = angle / half, i = angle % half;
    const float along = cosine[angle], across = sine[angle];
    for (int64_t h = 0; h < heads; h++) {
        const int64_t low = (t * heads + h) * 2 * half + i;
        const float a = x[low], b = x[low + half];
        out[low] = fmaf(a, along, -b * across);
        out[low + half] = fmaf(b, along, a * across);
    }
}

extern "C" void rope(const float *x, const float *cosine, const float *sine, float *out, int64_t tokens,
                     int64_t heads, int64_t half, hipStream_t stream)
{
    const int64_t angles = tokens * half;
    turn_heads<<<(angles + THREADS - 1) / THREADS, THREADS, 0, stream>>>(x, cosine, sine, out, angles, heads, half);
}
