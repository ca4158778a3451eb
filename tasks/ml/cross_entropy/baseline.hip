// Baseline of cross_entropy: a block a row; its maximum and its sum by trees in shared memory.
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

// The same for the largest one.
__device__ real block_max(real value)
{
    __shared__ real part[THREADS];
    const int me = threadIdx.x;
    part[me] = value;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (me < half)
            part[me] = fmax(part[me], part[me + half]);
        __syncthreads();
    }
    const real top = part[0];
    __syncthreads();
    return top;
}

__device__ real row_max(const real *row, int64_t classes)
{
    real top = row[0];
    for (int64_t c = threadIdx.x; c < classes; c += THREADS)
        top = fmax(top, row[c]);
    return block_max(top);
}

__global__ void loss_of_rows(const real *logits, const int32_t *label, real *loss, int64_t classes)
{
    const real *row = logits + blockIdx.x * classes;
    const real top = row_max(row, classes);
    real sum = 0;
    for (int64_t c = threadIdx.x; c < classes; c += THREADS)
        sum += exp(row[c] - top);
    sum = block_sum(sum);
    if (threadIdx.x == 0)
        loss[blockIdx.x] = top - row[label[blockIdx.x]] + log(sum);
}

extern "C" void cross_entropy(const real *logits, const int32_t *label, real *loss, int64_t rows, int64_t classes,
                              hipStream_t stream)
{
    loss_of_rows<<<rows, THREADS, 0, stream>>>(logits, label, loss, classes);
}

#ifdef KC_ORACLE
__global__ void magnitude_of_rows(const real *logits, const int32_t *label, real *loss, int64_t classes)
{
    const real *row = logits + blockIdx.x * classes;
    const real top = row_max(row, classes);
    real sum = 0, spread = 0;
    for (int64_t c = threadIdx.x; c < classes; c += THREADS) {
        sum += exp(row[c] - top);
        spread += exp(row[c] - top) * (top - row[c]);
    }
    sum = block_sum(sum);
    spread = block_sum(spread) / sum;
    if (threadIdx.x == 0) {
        const real chosen = row[label[blockIdx.x]];
        const real rounded = fabs(top) + fabs(chosen) + fabs(top - chosen + log(sum));
        loss[blockIdx.x] = 1 + spread + rounded / sqrt((real)classes);
    }
}

extern "C" void cross_entropy_magnitude(const real *logits, const int32_t *label, real *loss, int64_t rows,
                                        int64_t classes, hipStream_t stream)
{
    magnitude_of_rows<<<rows, THREADS, 0, stream>>>(logits, label, loss, classes);
}
#endif
