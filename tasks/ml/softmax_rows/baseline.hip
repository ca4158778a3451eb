// Baseline of softmax_rows: a block a row; maximum and sum of its threads by trees in shared memory.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 256;

// The sum of `part` over the block, for all its threads; `part` may be used again afterwards.
__device__ float tree_sum(float *part)
{
    const int me = threadIdx.x;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (me < half)
            part[me] += part[me + half];
    }
    __syncthreads();
    const float sum = part[0];
    __syncthreads();
    return sum;
}

// The same for the maximum.
__device__ float tree_max(float *part)
{
    const int me = threadIdx.x;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (me < half)
            part[me] = fmaxf(part[me], part[me + half]);
    }
    __syncthreads();
    const float top = part[0];
    __syncthreads();
    return top;
}

__global__ void softmax_each(const float *x, float *out, int64_t cols)
{
    __shared__ float part[THREADS];
    const float *row = x + blockIdx.x * cols;
    float *to = out + blockIdx.x * cols;
    const int me = threadIdx.x;
    float mine = row[0];
    for (int64_t c = me; c < cols; c += THREADS)
        mine = fmaxf(mine, row[c]);
    part[me] = mine;
    const float top = tree_max(part);

    mine = 0.0f;
    for (int64_t c = me; c < cols; c += THREADS) {
        to[c] = expf(row[c] - top);
        mine += to[c];
    }
    part[me] = mine;
    const float sum = tree_sum(part);

    for (int64_t c = me; c < cols; c += THREADS)
        to[c] /= sum;
}

extern "C" void softmax_rows(const float *x, float *out, int64_t rows, int64_t cols, hipStream_t stream)
{
    softmax_each<<<rows, THREADS, 0, stream>>>(x, out, cols);
}
