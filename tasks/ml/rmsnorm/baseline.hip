// Baseline of rmsnorm: a block a row; its threads add up squares, a tree in shared memory adds up the threads.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 256;

// The sum of `value` over the block, for all its threads.
__device__ float block_sum(float value)
{
    __shared__ float part[THREADS];
    const int me = threadIdx.x;
    part[me] = value;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (me < half)
            part[me] += part[me + half];
        __syncthreads();
    }
    return part[0];
}

__global__ void normalise_rows(const float *x, const float *weight, float *out, int64_t cols, float eps)
{
    const float *row = x + blockIdx.x * cols;
    float *to = out + blockIdx.x * cols;
    float squares = 0.0f;
    for (int64_t c = threadIdx.x; c < cols; c += THREADS)
        squares += row[c] * row[c];
    const float scale = 1.0f / sqrtf(block_sum(squares) / (float)cols + eps);
    for (int64_t c = threadIdx.x; c < cols; c += THREADS)
        to[c] = row[c] * scale * weight[c];
}

extern "C" void rmsnorm(const float *x, const float *weight, float *out, int64_t rows, int64_t cols, float eps,
                        hipStream_t stream)
{
    normalise_rows<<<rows, THREADS, 0, stream>>>(x, weight, out, cols, eps);
}
