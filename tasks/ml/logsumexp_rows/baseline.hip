// Baseline of logsumexp_rows: a block a row; maximum and sum of its threads by trees in shared memory.
#include <hip/hip_runtime.h>
#include <stdint.h>
#ifndef real
#define real float
#endif

constexpr int THREADS = 256;

// The sum of `part` over the block, for all its threads; `part` may be used again afterwards.
__device__ real tree_sum(real *part)
{
    const int me = threadIdx.x;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (me < half)
            part[me] += part[me + half];
    }
    __syncthreads();
    const real sum = part[0];
    __syncthreads();
    return sum;
}

// The same for the maximum.
__device__ real tree_max(real *part)
{
    const int me = threadIdx.x;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (me < half)
            part[me] = fmax(part[me], part[me + half]);
    }
    __syncthreads();
    const real top = part[0];
    __syncthreads();
    return top;
}

// The largest value of a row, for all threads of the block; `part` may be used again afterwards.
__device__ real row_max(const real *row, int64_t cols, real *part)
{
    const int me = threadIdx.x;
    real mine = row[0];
    for (int64_t c = me; c < cols; c += THREADS)
        mine = fmax(mine, row[c]);
    part[me] = mine;
    return tree_max(part);
}

__global__ void logsumexp_each(const real *x, real *out, int64_t cols)
{
    __shared__ real part[THREADS];
    const real *row = x + blockIdx.x * cols;
    const int me = threadIdx.x;
    const real top = row_max(row, cols, part);

    real mine = 0;
    for (int64_t c = me; c < cols; c += THREADS)
        mine += exp(row[c] - top);
    part[me] = mine;
    const real sum = tree_sum(part);

    if (me == 0)
        out[blockIdx.x] = top + log(sum);
}

extern "C" void logsumexp_rows(const real *x, real *out, int64_t rows, int64_t cols, hipStream_t stream)
{
    logsumexp_each<<<rows, THREADS, 0, stream>>>(x, out, cols);
}

#ifdef KC_ORACLE
__global__ void magnitude_each(const real *x, real *out, int64_t cols)
{
    __shared__ real part[THREADS];
    const real *row = x + blockIdx.x * cols;
    const int me = threadIdx.x;
    const real top = row_max(row, cols, part);

    real mine = 0, spread = 0;
    for (int64_t c = me; c < cols; c += THREADS) {
        mine += exp(row[c] - top);
        spread += exp(row[c] - top) * (top - row[c]);
    }
    part[me] = mine;
    const real sum = tree_sum(part);
    part[me] = spread;
    const real below = tree_sum(part) / sum;

    if (me == 0)
        out[blockIdx.x] = 1 + below + fabs(top + log(sum)) / sqrt((real)cols);
}

extern "C" void logsumexp_rows_magnitude(const real *x, real *out, int64_t rows, int64_t cols, hipStream_t stream)
{
    magnitude_each<<<rows, THREADS, 0, stream>>>(x, out, cols);
}
#endif
