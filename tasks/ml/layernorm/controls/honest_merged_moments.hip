// Honest layernorm in HIP: one pass gives each lane count, mean and sum of squared deviations (Welford), and shuffles
// merge them (Chan); a wave a row.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 256;

struct Moments {
    float count, mean, squares;
};

__device__ Moments merge(Moments a, Moments b)
{
    const float count = a.count + b.count;
    if (count == 0.0f)
        return a;
    const float apart = b.mean - a.mean;
    const float share = b.count / count;
    return {count, a.mean + apart * share, a.squares + b.squares + apart * apart * a.count * share};
}

__global__ void normalise_rows(const float *x, const float *weight, const float *bias, float *out, int64_t rows,
                               int64_t cols, float eps)
{
    const int lane = threadIdx.x % warpSize;
    const int64_t r = (int64_t)blockIdx.x * (THREADS / warpSize) + threadIdx.x / warpSize;
    if (r >= rows) // the whole wave
        return;
    const float *row = x + r * cols;
    Moments mine = {0.0f, 0.0f, 0.0f};
    for (int64_t c = lane; c < cols; c += warpSize)
        mine = merge(mine, {1.0f, row[c], 0.0f});
    for (int distance = warpSize / 2; distance > 0; distance /= 2) {
        const Moments other = {__shfl_xor(mine.count, distance), __shfl_xor(mine.mean, distance),
                               __shfl_xor(mine.squares, distance)};
        mine = lane & distance ? merge(other, mine) : merge(mine, other); // the same for both lanes
    }
    const float scale = rsqrtf(mine.squares / (float)cols + eps);
    for (int64_t c = lane; c < cols; c += warpSize)
        out[r * cols + c] = fmaf((row[c] - mine.mean) * scale, weight[c], bias[c]);
}

extern "C" void layernorm(const float *x, const float *weight, const float *bias, float *out, int64_t rows,
                          int64_t cols, float eps, hipStream_t stream)
{
    // Enough blocks for waves of 64; with waves of 32, half of them find no row.
    const unsigned blocks = (rows + THREADS / 64 - 1) / (THREADS / 64);
    normalise_rows<<<blocks, THREADS, 0, stream>>>(x, weight, bias, out, rows, cols, eps);
}
