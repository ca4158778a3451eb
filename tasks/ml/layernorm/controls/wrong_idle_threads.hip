// Wrong layernorm in HIP: a thread keeps its elements in registers, zeros behind the row's end, and the zeros'
// deviations count in the variance; right where cols is a multiple of the block.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 256;

__device__ float block_sum(float value)
{
    __shared__ float part[THREADS];
    const int me = threadIdx.x;
    __syncthreads();
    part[me] = value;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (me < half)
            part[me] += part[me + half];
        __syncthreads();
    }
    return part[0];
}

__global__ void normalise_rows(const float *x, const float *weight, const float *bias, float *out, int64_t cols,
                               float eps)
{
    const float *row = x + blockIdx.x * cols;
    const int64_t padded = (cols + THREADS - 1) / THREADS * THREADS;
    float sum = 0.0f, squares = 0.0f;
    for (int64_t c = threadIdx.x; c < padded; c += THREADS)
        sum += c < cols ? row[c] : 0.0f;
    const float mean = block_sum(sum) / (float)cols;
    for (int64_t c = threadIdx.x; c < padded; c += THREADS) {
        const float deviation = (c < cols ? row[c] : 0.0f) - mean;
        squares += deviation * deviation;
    }
    const float scale = 1.0f / sqrtf(block_sum(squares) / (float)cols + eps);
    for (int64_t c = threadIdx.x; c < cols; c += THREADS)
        out[blockIdx.x * cols + c] = (row[c] - mean) * scale * weight[c] + bias[c];
}

extern "C" void layernorm(const float *x, const float *weight, const float *bias, float *out, int64_t rows,
                          int64_t cols, float eps, hipStream_t stream)
{
    normalise_rows<<<rows, THREADS, 0, stream>>>(x, weight, bias, out, cols, eps);
}
