// Honest rmsnorm in HIP: a block a row; sums go through the lanes of a wave by shuffles, then over the waves.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 256, NARROWEST_WAVE = 32;

__device__ float wave_sum(float value)
{
    for (int distance = warpSize / 2; distance > 0; distance /= 2)
        value += __shfl_xor(value, distance);
    return value;
}

// The sum of `value` over the block, for all its threads.
__device__ float block_sum(float value)
{
    __shared__ float of_wave[THREADS / NARROWEST_WAVE];
    const float mine = wave_sum(value);
    if (threadIdx.x % warpSize == 0)
        of_wave[threadIdx.x / warpSize] = mine;
    __syncthreads();
    float sum = 0.0f;
    for (int wave = 0; wave < THREADS / warpSize; wave++)
        sum += of_wave[wave];
    return sum;
}

__global__ void normalise_rows(const float *x, const float *weight, float *out, int64_t cols, float eps)
{
    const float *row = x + blockIdx.x * cols;
    float squares = 0.0f;
    for (int64_t c = threadIdx.x; c < cols; c += THREADS)
        squares = fmaf(row[c], row[c], squares);
    const float root = sqrtf(block_sum(squares) / (float)cols + eps);
    for (int64_t c = threadIdx.x; c < cols; c += THREADS)
        out[blockIdx.x * cols + c] = row[c] / root * weight[c];
}

extern "C" void rmsnorm(const float *x, const float *weight, float *out, int64_t rows, int64_t cols, float eps,
                        hipStream_t stream)
{
    normalise_rows<<<rows, THREADS, 0, stream>>>(x, weight, out, cols, eps);
}
