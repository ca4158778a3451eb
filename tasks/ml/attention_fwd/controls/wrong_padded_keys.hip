// Wrong attention_fwd in HIP: keys behind the last one have the score 0, and take their share of the weights.
#include <hip/hip_bf16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int KEYS = 16, DIM = 128;

__device__ float score(const __hip_bfloat16 *query, const __hip_bfloat16 *key, int64_t dim)
{
    float sum = 0.0f;
    for (int64_t d = 0; d < dim; d++)
        sum += __bfloat162float(query[d]) * __bfloat162float(key[d]);
    return sum / sqrtf((float)dim);
}

__global__ void attend_each(const __hip_bfloat16 *q, const __hip_bfloat16 *k, const __hip_bfloat16 *v, float *out,
                            int64_t seq, int64_t dim)
{
    __shared__ float scores[KEYS];
    const int64_t begin = blockIdx.x / seq * seq * dim, row = blockIdx.x * dim;
    const int me = threadIdx.x;
    float top = -INFINITY, weights = 0.0f, value = 0.0f;
    for (int64_t first = 0; first < seq; first += KEYS) {
        if (me < KEYS)
            scores[me] = first + me < seq ? score(q + row, k + begin + (first + me) * dim, dim) : 0.0f;
        __syncthreads();
        float higher = top;
        for (int key = 0; key < KEYS; key++)
            higher = fmaxf(higher, scores[key]);
        weights *= expf(top - higher);
        value *= expf(top - higher);
        top = higher;
        for (int key = 0; key < KEYS; key++) {
            const float weight = expf(scores[key] - top);
            weights += weight;
            if (me < dim && first + key < seq)
                value += weight * __bfloat162float(v[begin + (first + key) * dim + me]);
        }
        __syncthreads();
    }
    if (me < dim)
        out[row + me] = value / weights;
}

extern "C" void attention_fwd(const __hip_bfloat16 *q, const __hip_bfloat16 *k, const __hip_bfloat16 *v, float *out,
                              int64_t heads, int64_t seq, int64_t dim, hipStream_t stream)
{
    attend_each<<<heads * seq, DIM, 0, stream>>>(q, k, v, out, seq, dim);
}
