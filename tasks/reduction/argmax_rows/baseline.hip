// Baseline of argmax_rows: a block a row; a tree in shared memory keeps the larger value, of equal ones the first.
#include <hip/hip_runtime.h>
#include <stdint.h>
#ifndef real
#define real float
#endif

constexpr int THREADS = 256;

// The place of the block's largest value, of equal ones the smallest place; for all threads.
__device__ int64_t first_of_largest(real value, int64_t place)
{
    __shared__ real best[THREADS];
    __shared__ int64_t where[THREADS];
    const int me = threadIdx.x;
    best[me] = value;
    where[me] = place;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        const int other = me + half;
        if (me < half && (best[other] > best[me] || (best[other] == best[me] && where[other] < where[me]))) {
            best[me] = best[other];
            where[me] = where[other];
        }
        __syncthreads();
    }
    return where[0];
}

__global__ void argmax_each(const real *x, int32_t *out, int64_t cols)
{
    const real *row = x + blockIdx.x * cols;
    real best = row[0];
    int64_t where = 0;
    for (int64_t c = threadIdx.x; c < cols; c += THREADS) {
        if (row[c] > best) {
            best = row[c];
            where = c;
        }
    }
    const int64_t found = first_of_largest(best, where);
    if (threadIdx.x == 0)
        out[blockIdx.x] = (int32_t)found;
}

extern "C" void argmax_rows(const real *x, int32_t *out, int64_t rows, int64_t cols, hipStream_t stream)
{
    argmax_each<<<rows, THREADS, 0, stream>>>(x, out, cols);
}
