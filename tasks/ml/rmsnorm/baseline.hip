// Baseline of rmsnorm: a block a row; its threads add up squares, a tree in shared memory adds up the threads.
#include <hip/hip_runtime.h>
#include <stdint.h>
#ifndef real
#define real float
#endif

constexpr int THREADS = 256;

// The sum of `value` over the block, for all its threads.
__device__ real block_sum(real value)
{
    __shared__ real part[THREADS];
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

__global__ void normalise_rows(const real *x, const real *weight, real *out, int64_t cols, real eps)
{
    const real *row = x + blockIdx.x * cols;
    real *to = out + blockIdx.x * cols;
    real squares = 0;
    for (int64_t c = threadIdx.x; c < cols; c += THREADS)
        squares += row[c] * row[c];
    const real scale = (real)1 / sqrt(block_sum(squares) / (real)cols + eps);
    for (int64_t c = threadIdx.x; c < cols; c += THREADS)
        to[c] = row[c] * scale * weight[c];
}

extern "C" void rmsnorm(const real *x, const real *weight, real *out, int64_t rows, int64_t cols, real eps,
                        hipStream_t stream)
{
    normalise_rows<<<rows, THREADS, 0, stream>>>(x, weight, out, cols, eps);
}
