// Baseline of softmax_rows: a block a row; maximum and sum of its threads by trees in shared memory.
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

__global__ void softmax_each(const real *x, real *out, int64_t cols)
{
    __shared__ real part[THREADS];
    const real *row = x + blockIdx.x * cols;
    real *to = out + blockIdx.x * cols;
    const int me = threadIdx.x;
    const real top = row_max(row, cols, part);

    real mine = 0;
    for (int64_t c = me; c < cols; c += THREADS) {
        to[c] = exp(row[c] - top);
        mine += to[c];
    }
    part[me] = mine;
    const real sum = tree_sum(part);

    for (int64_t c = me; c < cols; c += THREADS)
        to[c] /= sum;
}

extern "C" void softmax_rows(const real *x, real *out, int64_t rows, int64_t cols, hipStream_t stream)
{
    softmax_each<<<rows, THREADS, 0, stream>>>(x, out, cols);
}

#ifdef KC_ORACLE
// Makes magnitudes of what softmax_each has left in `out`.
__global__ void weigh_each(const real *x, real *out, int64_t cols)
{
    __shared__ real part[THREADS];
    const real *row = x + blockIdx.x * cols;
    real *to = out + blockIdx.x * cols;
    const real top = row_max(row, cols, part);
    for (int64_t c = threadIdx.x; c < cols; c += THREADS)
        to[c] = to[c] * (1 + (top - row[c])) + (real)0x1p-102;
}

extern "C" void softmax_rows_magnitude(const real *x, real *out, int64_t rows, int64_t cols, hipStream_t stream)
{
    softmax_each<<<rows, THREADS, 0, stream>>>(x, out, cols);
    weigh_each<<<rows, THREADS, 0, stream>>>(x, out, cols);
}
#endif
