// Wrong rmsnorm in HIP: shuffles go over 32 lanes, and waves of 64 leave out their upper half; right on waves of 32.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 256, NARROWEST_WAVE = 32;

__device__ float block_sum(float value)
{
    __shared__ float of_wave[THREADS / NARROWEST_WAVE];
    for (int distance = 16; distance > 0; distance /= 2)
        value += __shfl_xor(value, distance);
    if (threadIdx.x % warpSize == 0)
        of_wave[threadIdx.x / warpSize] = value;
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
        squares += row[c] * row[c];
    const float scale = 1.0f / sqrtf(block_sum(squares) / (float)cols + eps);
    for (int64_t c = threadIdx.x; c < cols; c += THREADS)
        out[blockIdx.x * cols + c] = row[c] * scale * weight[c];
}

extern "C" void rmsnorm(const float *x, const float *weight, float *out, int64_t rows, int64_t cols, float eps,
                        hipStream_t stream)
{
    normalise_rows<<<rows, THREADS, 0, stream>>>(x, weight, out, cols, eps);
}
