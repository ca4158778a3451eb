// Honest attention_fwd in HIP: a block a query. A first pass finds the highest score and the sum of weights; a second
// one makes probabilities of 128 keys at a time, kept in bfloat16, and each thread adds up one dimension.
#include <hip/hip_bf16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 128, DIM = 128;

struct Attention {
    const __hip_bfloat16 *k, *v;
    int64_t seq;
    int dim;
    float scale;
};

__device__ float score(const Attention &of, const float *query, int64_t key)
{
    float sum = 0.0f;
    for (int d = 0; d < of.dim; d++)
        sum = fmaf(query[d], __bfloat162float(of.k[key * of.dim + d]), sum);
    return sum * of.scale;
}

// The highest of all threads' values, for all of them; `part` may be used again afterwards.
__device__ float block_max(float *part, float value)
{
    part[threadIdx.x] = value;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            part[threadIdx.x] = fmaxf(part[threadIdx.x], part[threadIdx.x + half]);
        __syncthreads();
    }
    const float top = part[0];
    __syncthreads();
    return top;
}

// The same of their sum.
__device__ float block_sum(float *part, float value)
{
    part[threadIdx.x] = value;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    const float sum = part[0];
    __syncthreads();
    return sum;
}

// This thread's dimension of the mean of v.
__device__ float mean(const Attention &of, const float *query, __hip_bfloat16 *probability, float top, float sum)
{
    const int d = threadIdx.x;
    float value = 0.0f;
    for (int64_t first = 0; first < of.seq; first += THREADS) {
        const int keys = of.seq - first < THREADS ? of.seq - first : THREADS;
        if (threadIdx.x < keys)
            probability[d] = __float2bfloat16(expf(score(of, query, first + threadIdx.x) - top) / sum);
        __syncthreads();
        for (int key = 0; key < keys && d < of.dim; key++)
            value += __bfloat162float(probability[key]) * __bfloat162float(of.v[(first + key) * of.dim + d]);
        __syncthreads();
    }
    return value;
}

__global__ void attend_each(const __hip_bfloat16 *q, Attention of, float *out)
{
    __shared__ float query[DIM], part[THREADS];
    __shared__ __hip_bfloat16 probability[THREADS];
    const int64_t begin = blockIdx.x / of.seq * of.seq * of.dim, row = blockIdx.x * (int64_t)of.dim;
    const int me = threadIdx.x;
    of.k += begin;
    of.v += begin;
    query[me] = me < of.dim ? __bfloat162float(q[row + me]) : 0.0f;
    __syncthreads();
    float top = -INFINITY;
    for (int64_t key = me; key < of.seq; key += THREADS)
        top = fmaxf(top, score(of, query, key));
    top = block_max(part, top);
    float weights = 0.0f;
    for (int64_t key = me; key < of.seq; key += THREADS)
        weights += expf(score(of, query, key) - top);
    const float sum = block_sum(part, weights), value = mean(of, query, probability, top, sum);
    if (me < of.dim)
        out[row + me] = value;
}

extern "C" void attention_fwd(const __hip_bfloat16 *q, const __hip_bfloat16 *k, const __hip_bfloat16 *v, float *out,
                              int64_t heads, int64_t seq, int64_t dim, hipStream_t stream)
{
    const Attention of = {k, v, seq, (int)dim, 1 / sqrtf((float)dim)};
    attend_each<<<heads * seq, THREADS, 0, stream>>>(q, of, out);
}
