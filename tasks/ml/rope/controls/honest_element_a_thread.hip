// Honest rope in HIP: a block a token, its cosines and sines in shared memory (a strip at a time), a thread an element,
// whose sign says which half it is in.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 256, STRIP = 128;

__global__ void turn_token(const float *x, const float *cosine, const float *sine, float *out, int64_t heads,
                           int64_t half)
{
    __shared__ float along[STRIP], across[STRIP];
    const int64_t t = blockIdx.x;
    for (int64_t first = 0; first < half; first += STRIP) {
        const int64_t wide = half - first < STRIP ? half - first : STRIP;
        __syncthreads(); // the strip before is done with
        for (int64_t i = threadIdx.x; i < wide; i += THREADS) {
            along[i] = cosine[t * half + first + i];
            across[i] = sine[t * half + first + i];
        }
        __syncthreads();
        for (int64_t e = threadIdx.x; e < heads * 2 * wide; e += THREADS) {
            const int64_t h = e / (2 * wide), i = e % wide;
            const bool is_high = e % (2 * wide) >= wide;
            const int64_t low = (t * heads + h) * 2 * half + first + i, high = low + half;
            const float partner = is_high ? x[low] : -x[high];
            out[is_high ? high : low] = x[is_high ? high : low] * along[i] + partner * across[i];
        }
    }
}

extern "C" void rope(const float *x, const float *cosine, const float *sine, float *out, int64_t tokens,
                     int64_t heads, int64_t half, hipStream_t stream)
{
    turn_token<<<tokens, THREADS, 0, stream>>>(x, cosine, sine, out, heads, half);
}
