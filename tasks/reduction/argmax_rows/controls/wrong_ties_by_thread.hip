// Wrong argmax_rows in HIP: of equal values the tree keeps that of its lower half, whose column need not be the first.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 64;

__global__ void argmax_each(const float *x, int32_t *out, int64_t cols)
{
    __shared__ float best[THREADS];
    __shared__ int32_t where[THREADS];
    const float *row = x + blockIdx.x * cols;
    const int me = threadIdx.x;
    best[me] = row[0];
    where[me] = 0;
    for (int64_t c = me; c < cols; c += THREADS) {
        if (row[c] > best[me]) {
            best[me] = row[c];
            where[me] = (int32_t)c;
        }
    }
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (me < half && best[me + half] > best[me]) {
            best[me] = best[me + half];
            where[me] = where[me + half];
        }
        __syncthreads();
    }
    if (me == 0)
        out[blockIdx.x] = where[0];
}

extern "C" void argmax_rows(const float *x, int32_t *out, int64_t rows, int64_t cols, hipStream_t stream)
{
    argmax_each<<<rows, THREADS, 0, stream>>>(x, out, cols);
}
