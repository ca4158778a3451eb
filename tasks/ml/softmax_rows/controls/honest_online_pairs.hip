// Honest softmax_rows in HIP: one pass finds maximum and sum as a pair; pairs are merged by shuffles, then over waves.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 256, NARROWEST_WAVE = 32;

// A sum of exponentials relative to `top`.
struct Pair {
    float top, sum;
};

__device__ Pair merged(Pair a, Pair b)
{
    const float top = fmaxf(a.top, b.top);
    return {top, a.sum * expf(a.top - top) + b.sum * expf(b.top - top)};
}

__device__ Pair of_block(Pair mine)
{
    __shared__ Pair of_wave[THREADS / NARROWEST_WAVE];
    for (int distance = warpSize / 2; distance > 0; distance /= 2) {
        const float top = __shfl_xor(mine.top, distance), sum = __shfl_xor(mine.sum, distance);
        mine = merged(mine, {top, sum});
    }
    if (threadIdx.x % warpSize == 0)
        of_wave[threadIdx.x / warpSize] = mine;
    __syncthreads();
    Pair all = of_wave[0];
    for (int wave = 1; wave < THREADS / warpSize; wave++)
        all = merged(all, of_wave[wave]);
    return all;
}

__global__ void softmax_each(const float *x, float *out, int64_t cols)
{
    const float *row = x + blockIdx.x * cols;
    Pair mine = {row[0], 0.0f};
    for (int64_t c = threadIdx.x; c < cols; c += THREADS)
        mine = merged(mine, {row[c], 1.0f});
    const Pair all = of_block(mine);
    for (int64_t c = threadIdx.x; c < cols; c += THREADS)
        out[blockIdx.x * cols + c] = expf(row[c] - all.top) / all.sum;
}

extern "C" void softmax_rows(const float *x, float *out, int64_t rows, int64_t cols, hipStream_t stream)
{
    softmax_each<<<rows, THREADS, 0, stream>>>(x, out, cols);
}
