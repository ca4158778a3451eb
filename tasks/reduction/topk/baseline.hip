// Baseline of topk: a block a row, which it searches once for each place: for the best element that comes behind the
// one found before.
#include <hip/hip_runtime.h>
#include <stdint.h>

#ifndef real
#define real float
#endif

constexpr int THREADS = 256;

// An element and its column; -1 is that of none.
struct Element {
    real value;
    int32_t column;
};

__device__ bool comes_before(Element a, Element b)
{
    if (a.column < 0 || b.column < 0)
        return b.column < 0 && a.column >= 0;
    return a.value > b.value || (a.value == b.value && a.column < b.column);
}

// The first of the elements that the block's threads hold, for all of them.
__device__ Element block_first(Element mine)
{
    __shared__ real value[THREADS];
    __shared__ int32_t column[THREADS];
    const int me = threadIdx.x;
    value[me] = mine.value;
    column[me] = mine.column;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (me < half && comes_before({value[me + half], column[me + half]}, {value[me], column[me]})) {
            value[me] = value[me + half];
            column[me] = column[me + half];
        }
        __syncthreads();
    }
    const Element first = {value[0], column[0]};
    __syncthreads(); // both are used again
    return first;
}

__global__ void search_rows(const real *x, real *values, int32_t *where, int64_t cols, int64_t places)
{
    const real *row = x + blockIdx.x * cols;
    Element found = {0, -1};
    for (int64_t place = 0; place < places; place++) {
        Element best = {0, -1};
        for (int64_t c = threadIdx.x; c < cols; c += THREADS) {
            const Element here = {row[c], (int32_t)c};
            if ((place == 0 || comes_before(found, here)) && comes_before(here, best))
                best = here;
        }
        found = block_first(best);
        if (threadIdx.x == 0) {
            values[blockIdx.x * places + place] = found.value;
            where[blockIdx.x * places + place] = found.column;
        }
    }
}

extern "C" void topk(const real *x, real *values, int32_t *where, int64_t rows, int64_t cols, int64_t k,
                     hipStream_t stream)
{
    const int64_t places = k < cols ? k : cols;
    search_rows<<<rows, THREADS, 0, stream>>>(x, values, where, cols, places);
}
