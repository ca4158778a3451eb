// Honest logsumexp_rows in HIP: 32 lanes a row, eight rows a block; shuffles stay within the lanes of a row.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int LANES = 32, ROWS = 8;

__device__ float group_max(float value)
{
    for (int distance = LANES / 2; distance > 0; distance /= 2)
        value = fmaxf(value, __shfl_xor(value, distance, LANES));
    return value;
}

__device__ float group_sum(float value)
{
    for (int distance = LANES / 2; distance > 0; distance /= 2)
        value += __shfl_xor(value, distance, LANES);
    return value;
}

__global__ void logsumexp_groups(const float *x, float *out, int64_t rows, int64_t cols)
{
    const int64_t r = (int64_t)blockIdx.x * ROWS + threadIdx.y;
    if (r >= rows)
        return;
    const float *row = x + r * cols;
    float top = row[0], sum = 0.0f;
    for (int64_t c = threadIdx.x; c < cols; c += LANES)
        top = fmaxf(top, row[c]);
    top = group_max(top);
    for (int64_t c = threadIdx.x; c < cols; c += LANES)
        sum += expf(row[c] - top);
    sum = group_sum(sum);
    if (threadIdx.x == 0)
        out[r] = top + logf(sum);
}

extern "C" void logsumexp_rows(const float *x, float *out, int64_t rows, int64_t cols, hipStream_t stream)
{
    const unsigned blocks = (rows + ROWS - 1) / ROWS;
    logsumexp_groups<<<blocks, dim3(LANES, ROWS), 0, stream>>>(x, out, rows, cols);
}
