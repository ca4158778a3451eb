// Honest argmax_rows in HIP: value and column form one integer, whose maximum is found by one atomic a thread.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 128;

typedef unsigned long long Key;

// Larger for a larger value, and for the same value at a smaller column.
__device__ Key key_of(float value, int64_t column)
{
    const uint32_t bits = __float_as_uint(value + 0.0f); // the sum makes a zero of -0, which equals it
    const uint32_t ordered = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return (Key)ordered << 32 | (0xffffffffu - (uint32_t)column);
}

__global__ void argmax_each(const float *x, int32_t *out, int64_t cols)
{
    __shared__ Key largest;
    const float *row = x + blockIdx.x * cols;
    if (threadIdx.x == 0)
        largest = 0;
    __syncthreads();
    Key mine = 0;
    for (int64_t c = threadIdx.x; c < cols; c += THREADS) {
        const Key key = key_of(row[c], c);
        mine = key > mine ? key : mine;
    }
    atomicMax(&largest, mine);
    __syncthreads();
    if (threadIdx.x == 0)
        out[blockIdx.x] = (int32_t)(0xffffffffu - (uint32_t)largest);
}

extern "C" void argmax_rows(const float *x, int32_t *out, int64_t rows, int64_t cols, hipStream_t stream)
{
    argmax_each<<<rows, THREADS, 0, stream>>>(x, out, cols);
}
