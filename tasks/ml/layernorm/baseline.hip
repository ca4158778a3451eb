// Baseline of layernorm: a block a row, which it reads three times: for the mean, for the variance, for the result.
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
    const real sum = part[0];
    __syncthreads(); // `part` is used again
    return sum;
}

__global__ void normalise_rows(const real *x, const real *weight, const real *bias, real *out, int64_t cols, real eps)
{
    const real *row = x + blockIdx.x * cols;
    real sum = 0;
    for (int64_t c = threadIdx.x; c < cols; c += THREADS)
        sum += row[c];
    const real mean = block_sum(sum) / (real)cols;

    real squares = 0;
    for (int64_t c = threadIdx.x; c < cols; c += THREADS)
        squares += (row[c] - mean) * (row[c] - mean);
    const real spread = sqrt(block_sum(squares) / (real)cols + eps);

    for (int64_t c = threadIdx.x; c < cols; c += THREADS)
        out[blockIdx.x * cols + c] = (row[c] - mean) / spread * weight[c] + bias[c];
}

extern "C" void layernorm(const real *x, const real *weight, const real *bias, real *out, int64_t rows, int64_t cols,
                          real eps, hipStream_t stream)
{
    normalise_rows<<<rows, THREADS, 0, stream>>>(x, weight, bias, out, cols, eps);
}

#ifdef KC_ORACLE
__global__ void add_up_magnitudes(const real *x, const real *weight, const real *bias, real *out, int64_t cols,
                                  real eps)
{
    const real *row = x + blockIdx.x * cols;
    real sum = 0, sizes = 0;
    for (int64_t c = threadIdx.x; c < cols; c += THREADS) {
        sum += row[c];
        sizes += fabs(row[c]);
    }
    const real mean = block_sum(sum) / (real)cols;
    const real mean_size = block_sum(sizes) / (real)cols;

    real squares = 0;
    for (int64_t c = threadIdx.x; c < cols; c += THREADS)
        squares += (row[c] - mean) * (row[c] - mean);
    const real spread = sqrt(block_sum(squares) / (real)cols + eps);

    for (int64_t c = threadIdx.x; c < cols; c += THREADS)
        out[blockIdx.x * cols + c] = (fabs(row[c]) + mean_size) / spread * fabs(weight[c]) + fabs(bias[c]);
}

extern "C" void layernorm_magnitude(const real *x, const real *weight, const real *bias, real *out, int64_t rows,
                                    int64_t cols, real eps, hipStream_t stream)
{
    add_up_magnitudes<<<rows, THREADS, 0, stream>>>(x, weight, bias, out, cols, eps);
}
#endif
