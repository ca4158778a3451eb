// Honest layernorm in HIP: a row is read once, into shared memory as far as it fits. Sums go up within waves by shuffles
// and across waves through shared memory; deviations stay where the row was.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 128, KEPT = 4096, NARROWEST_WAVE = 32;

// The sum of `value` over the block, for all its threads.
__device__ float block_sum(float value)
{
    __shared__ float of_wave[THREADS / NARROWEST_WAVE];
    for (int distance = warpSize / 2; distance > 0; distance /= 2)
        value += __shfl_xor(value, distance);
    __syncthreads(); // the sum before is done with
    if (threadIdx.x % warpSize == 0)
        of_wave[threadIdx.x / warpSize] = value;
    __syncthreads();
    float sum = 0.0f;
    for (int wave = 0; wave < THREADS / warpSize; wave++)
        sum += of_wave[wave];
    return sum;
}

__global__ void normalise_rows(const float *x, const float *weight, const float *bias, float *out, int64_t cols,
                               float eps)
{
    __shared__ float kept[KEPT];
    const float *row = x + blockIdx.x * cols;
    float sum = 0.0f, squares = 0.0f;
    for (int64_t c = threadIdx.x; c < cols; c += THREADS) {
        const float value = row[c];
        if (c < KEPT)
            kept[c] = value; // for this thread alone
        sum += value;
    }
    const float mean = block_sum(sum) / (float)cols;
    for (int64_t c = threadIdx.x; c < cols; c += THREADS) {
        const float deviation = (c < KEPT ? kept[c] : row[c]) - mean;
        if (c < KEPT)
            kept[c] = deviation;
        squares = fmaf(deviation, deviation, squares);
    }
    const float scale = 1.0f / sqrtf(block_sum(squares) / (float)cols + eps);
    for (int64_t c = threadIdx.x; c < cols; c += THREADS)
        out[blockIdx.x * cols + c] = (c < KEPT ? kept[c] : row[c] - mean) * scale * weight[c] + bias[c];
}

extern "C" void layernorm(const float *x, const float *weight, const float *bias, float *out, int64_t rows,
                          int64_t cols, float eps, hipStream_t stream)
{
    normalise_rows<<<rows, THREADS, 0, stream>>>(x, weight, bias, out, cols, eps);
}
