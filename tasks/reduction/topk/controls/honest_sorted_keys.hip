// Honest topk in HIP: value and column become one key whose order is the wanted one. A block sorts the best keys so far
// together with the next piece of its row (a bitonic network in shared memory) and keeps the first half.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int KEPT = 64, THREADS = KEPT; // a thread compares two of the 2 * KEPT keys

// Larger keys come first: bits of the value in the order of floats, then the column's complement. 0 is no element's.
__device__ unsigned long long key_of(float value, int64_t column)
{
    const uint32_t bits = __float_as_uint(value + 0.0f); // no -0
    const uint32_t ordered = bits >> 31 ? ~bits : bits | 0x80000000u;
    return (unsigned long long)ordered << 32 | (uint32_t)~column;
}

__device__ void sort_descending(unsigned long long *keys)
{
    for (int run = 2; run <= 2 * KEPT; run *= 2)
        for (int distance = run / 2; distance > 0; distance /= 2) {
            __syncthreads();
            const int low = threadIdx.x / distance * 2 * distance + threadIdx.x % distance, high = low + distance;
            const bool descends = (low & run) == 0;
            if ((keys[low] < keys[high]) == descends) {
                const unsigned long long other = keys[low];
                keys[low] = keys[high];
                keys[high] = other;
            }
        }
    __syncthreads();
}

__global__ void sort_rows(const float *x, float *values, int32_t *where, int64_t cols, int64_t places)
{
    __shared__ unsigned long long keys[2 * KEPT];
    const float *row = x + blockIdx.x * cols;
    const int me = threadIdx.x;
    keys[me] = 0;
    for (int64_t first = 0; first < cols; first += KEPT) {
        const int64_t c = first + me;
        keys[KEPT + me] = c < cols ? key_of(row[c], c) : 0;
        sort_descending(keys);
    }
    if (me < places) {
        const int64_t c = (uint32_t) ~(uint32_t)keys[me];
        values[blockIdx.x * places + me] = row[c];
        where[blockIdx.x * places + me] = (int32_t)c;
    }
}

extern "C" void topk(const float *x, float *values, int32_t *where, int64_t rows, int64_t cols, int64_t k,
                     hipStream_t stream)
{
    const int64_t places = k < cols ? k : cols; // at most KEPT: k is
    sort_rows<<<rows, THREADS, 0, stream>>>(x, values, where, cols, places);
}
