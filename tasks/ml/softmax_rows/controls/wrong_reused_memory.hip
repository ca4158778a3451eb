// Wrong softmax_rows in HIP: the partial sums overwrite the maximum in shared memory before all threads have read it.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 256;

__global__ void softmax_each(const float *x, float *out, int64_t cols)
{
    __shared__ float part[THREADS];
    const float *row = x + blockIdx.x * cols;
    float *to = out + blockIdx.x * cols;
    const int me = threadIdx.x;
    float mine = row[0];
    for (int64_t c = me; c < cols; c += THREADS)
        mine = fmaxf(mine, row[c]);
    part[me] = mine;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (me < half)
            part[me] = fmaxf(part[me], part[me + half]);
        __syncthreads();
    }
    const float top = part[0];
    mine = 0.0f;
    for (int64_t c = me; c < cols; c += THREADS) {
        to[c] = expf(row[c] - top);
        mine += to[c];
    }
    part[me] = mine;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (me < half)
            part[me] += part[me + half];
        __syncthreads();
    }
    for (int64_t c = me; c < cols; c += THREADS)
        to[c] /= part[0];
}

extern "C" void softmax_rows(const float *x, float *out, int64_t rows, int64_t cols, hipStream_t stream)
{
    softmax_each<<<rows, THREADS, 0, stream>>>(x, out, cols);
}
