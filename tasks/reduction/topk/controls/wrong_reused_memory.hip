// Wrong topk in HIP: no barrier between reading what a round found and the next round's writing over it.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 256;

// Larger keys come first: the value's bits in the order of floats, then the column's complement.
__device__ unsigned long long key_of(float value, int64_t column)
{
    const uint32_t bits = __float_as_uint(value + 0.0f);
    const uint32_t ordered = bits >> 31 ? ~bits : bits | 0x80000000u;
    return (unsigned long long)ordered << 32 | (uint32_t)~column;
}

__device__ float value_of(unsigned long long key)
{
    const uint32_t ordered = key >> 32;
    return __uint_as_float(ordered >> 31 ? ordered & 0x7fffffffu : ~ordered);
}

__global__ void search_rows(const float *x, float *values, int32_t *where, int64_t cols, int64_t places)
{
    __shared__ unsigned long long best[THREADS];
    const float *row = x + blockIdx.x * cols;
    const int me = threadIdx.x;
    unsigned long long found = ~0ull;
    for (int64_t place = 0; place < places; place++) {
        unsigned long long mine = 0;
        for (int64_t c = me; c < cols; c += THREADS) {
            const unsigned long long key = key_of(row[c], c);
            mine = key < found && key > mine ? key : mine;
        }
        best[me] = mine;
        __syncthreads();
        for (int half = THREADS / 2; half > 0; half /= 2) {
            if (me < half && best[me + half] > best[me])
                best[me] = best[me + half];
            __syncthreads();
        }
        found = best[0];
        if (me == 0) {
            values[blockIdx.x * places + place] = value_of(found);
            where[blockIdx.x * places + place] = (int32_t)~(uint32_t)found;
        }
    }
}

extern "C" void topk(const float *x, float *values, int32_t *where, int64_t rows, int64_t cols, int64_t k,
                     hipStream_t stream)
{
    search_rows<<<rows, THREADS, 0, stream>>>(x, values, where, cols, k < cols ? k : cols);
}
