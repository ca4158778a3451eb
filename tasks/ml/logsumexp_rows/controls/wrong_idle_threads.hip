// Wrong logsumexp_rows in HIP: threads without a column leave their shared memory as it is, and it is added up.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 256;

__global__ void logsumexp_each(const float *x, float *out, int64_t cols)
{
    __shared__ float top[THREADS], part[THREADS];
    const float *row = x + blockIdx.x * cols;
    const int me = threadIdx.x;
    top[me] = row[0];
    for (int64_t c = me; c < cols; c += THREADS)
        top[me] = fmaxf(top[me], row[c]);
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (me < half)
            top[me] = fmaxf(top[me], top[me + half]);
        __syncthreads();
    }
    for (int64_t c = me; c < cols; c += THREADS)
        part[me] = (c < THREADS ? 0.0f : part[me]) + expf(row[c] - top[0]);
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (me < half)
            part[me] += part[me + half];
        __syncthreads();
    }
    if (me == 0)
        out[blockIdx.x] = top[0] + logf(part[0]);
}

extern "C" void logsumexp_rows(const float *x, float *out, int64_t rows, int64_t cols, hipStream_t stream)
{
    logsumexp_each<<<rows, THREADS, 0, stream>>>(x, out, cols);
}
