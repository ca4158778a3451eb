// Wrong topk in HIP: each round looks for the largest value below the last one found, and so finds one of several
// equal values alone.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 256;

__global__ void search_rows(const float *x, float *values, int32_t *where, int64_t cols, int64_t places)
{
    __shared__ float value[THREADS];
    __shared__ int32_t column[THREADS];
    const float *row = x + blockIdx.x * cols;
    const int me = threadIdx.x;
    float below = INFINITY;
    for (int64_t place = 0; place < places; place++) {
        value[me] = -INFINITY;
        column[me] = 0;
        for (int64_t c = me; c < cols; c += THREADS)
            if (row[c] < below && row[c] > value[me]) {
                value[me] = row[c];
                column[me] = (int32_t)c;
            }
        __syncthreads();
        for (int half = THREADS / 2; half > 0; half /= 2) {
            const int other = me + half;
            if (me < half && (value[other] > value[me] || (value[other] == value[me] && column[other] < column[me]))) {
                value[me] = value[other];
                column[me] = column[other];
            }
            __syncthreads();
        }
        below = value[0];
        if (me == 0) {
            values[blockIdx.x * places + place] = below;
            where[blockIdx.x * places + place] = column[0];
        }
        __syncthreads();
    }
}

extern "C" void topk(const float *x, float *values, int32_t *where, int64_t rows, int64_t cols, int64_t k,
                     hipStream_t stream)
{
    search_rows<<<rows, THREADS, 0, stream>>>(x, values, where, cols, k < cols ? k : cols);
}
