// Honest attention_fwd in HIP: head by head, a kernel writes all scores to memory, another makes probabilities of them,
// and a third one takes the means of v.
#include <hip/hip_bf16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 128;

__global__ void score_each(const __hip_bfloat16 *q, const __hip_bfloat16 *k, float *scores, int64_t seq, int dim)
{
    const int64_t e = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (e >= seq * seq)
        return;
    const __hip_bfloat16 *query = q + e / seq * dim, *key = k + e % seq * dim;
    float sum = 0.0f;
    for (int d = 0; d < dim; d++)
        sum += __bfloat162float(query[d]) * __bfloat162float(key[d]);
    scores[e] = sum / sqrtf((float)dim);
}

// A block a row; `part` holds what each thread found.
__global__ void weigh_rows(float *scores, int64_t seq)
{
    __shared__ float part[THREADS];
    float *row = scores + blockIdx.x * seq, top = -INFINITY, sum = 0.0f;
    for (int64_t key = threadIdx.x; key < seq; key += THREADS)
        top = fmaxf(top, row[key]);
    part[threadIdx.x] = top;
    __syncthreads();
#pragma unroll 4
    for (int other = 0; other < THREADS; other++)
        top = fmaxf(top, part[other]);
    __syncthreads();
    for (int64_t key = threadIdx.x; key < seq; key += THREADS)
        sum += row[key] = expf(row[key] - top);
    part[threadIdx.x] = sum;
    __syncthreads();
    sum = 0.0f;
#pragma unroll 4
    for (int other = 0; other < THREADS; other++)
        sum += part[other];
    for (int64_t key = threadIdx.x; key < seq; key += THREADS)
        row[key] /= sum;
}

__global__ void average_each(const float *probabilities, const __hip_bfloat16 *v, float *out, int64_t seq, int dim)
{
    const int64_t e = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (e >= seq * dim)
        return;
    const float *row = probabilities + e / dim * seq;
    float sum = 0.0f;
    for (int64_t key = 0; key < seq; key++)
        sum = fmaf(row[key], __bfloat162float(v[key * dim + e % dim]), sum);
    out[e] = sum;
}

extern "C" void attention_fwd(const __hip_bfloat16 *q, const __hip_bfloat16 *k, const __hip_bfloat16 *v, float *out,
                              int64_t heads, int64_t seq, int64_t dim, hipStream_t stream)
{
    float *scores;
    if (hipMallocAsync((void **)&scores, seq * seq * sizeof *scores, stream) != hipSuccess)
        return;
    const unsigned pairs = (seq * seq + THREADS - 1) / THREADS, elements = (seq * dim + THREADS - 1) / THREADS;
    for (int64_t head = 0; head < heads; head++) {
        const int64_t at = head * seq * dim;
        score_each<<<pairs, THREADS, 0, stream>>>(q + at, k + at, scores, seq, dim);
        weigh_rows<<<seq, THREADS, 0, stream>>>(scores, seq);
        average_each<<<elements, THREADS, 0, stream>>>(scores, v + at, out + at, seq, dim);
    }
    (void)hipFreeAsync(scores, stream);
}
