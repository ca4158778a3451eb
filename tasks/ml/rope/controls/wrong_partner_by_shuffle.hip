// Wrong rope in HIP: a lane takes its partner from the lane whose number differs by `half`, which is right where half
// is a power of two and a whole head lies in one wave.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 256;

__global__ void turn_elements(const float *x, const float *cosine, const float *sine, float *out, int64_t elements,
                              int64_t heads, int64_t half)
{
    const int64_t e = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    const float own = e < elements ? x[e] : 0.0f;
    const float partner = __shfl_xor(own, (int)half);
    if (e >= elements)
        return;
    const int64_t head = e / (2 * half), t = head / heads, i = e % half;
    const bool is_high = e % (2 * half) >= half;
    const float across = sine[t * half + i];
    out[e] = own * cosine[t * half + i] + (is_high ? partner : -partner) * across;
}

extern "C" void rope(const float *x, const float *cosine, const float *sine, float *out, int64_t tokens,
                     int64_t heads, int64_t half, hipStream_t stream)
{
    const int64_t elements = tokens * heads * 2 * half;
    const unsigned blocks = (elements + THREADS - 1) / THREADS;
    turn_elements<<<blocks, THREADS, 0, stream>>>(x, cosine, sine, out, elements, heads, half);
}
