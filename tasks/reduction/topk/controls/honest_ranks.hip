// Honest topk in HIP: a thread an element, which counts how many of its row come before it: that is its place.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 128;

__global__ void place_elements(const float *x, float *values, int32_t *where, int64_t elements, int64_t cols,
                               int64_t places)
{
    const int64_t e = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (e >= elements)
        return;
    const int64_t r = e / cols, c = e % cols;
    const float *row = x + r * cols;
    const float value = row[c];
    int64_t place = 0;
    for (int64_t other = 0; other < cols && place < places; other++)
        place += row[other] > value || (row[other] == value && other < c);
    if (place < places) {
        values[r * places + place] = value;
        where[r * places + place] = (int32_t)c;
    }
}

extern "C" void topk(const float *x, float *values, int32_t *where, int64_t rows, int64_t cols, int64_t k,
                     hipStream_t stream)
{
    const int64_t elements = rows * cols, places = k < cols ? k : cols;
    const unsigned blocks = (elements + THREADS - 1) / THREADS;
    place_elements<<<blocks, THREADS, 0, stream>>>(x, values, where, elements, cols, places);
}
