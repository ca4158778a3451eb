// Honest cross_entropy in HIP: one pass keeps the largest logit and the sum relative to it; lanes merge theirs by
// shuffles, waves theirs through shared memory.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 512, NARROWEST_WAVE = 32;

struct Running {
    float top, sum;
};

// Of nothing the sum is 0, and its largest logit counts for nothing.
__device__ Running merge(Running a, Running b)
{
    const float top = fmaxf(a.top, b.top);
    const float of_a = a.sum == 0.0f ? 0.0f : a.sum * expf(a.top - top);
    const float of_b = b.sum == 0.0f ? 0.0f : b.sum * expf(b.top - top);
    return {top, of_a + of_b};
}

__global__ void loss_of_rows(const float *logits, const int32_t *label, float *loss, int64_t classes)
{
    __shared__ Running of_wave[THREADS / NARROWEST_WAVE];
    const float *row = logits + blockIdx.x * classes;
    Running mine = {row[0], 0.0f};
    for (int64_t c = threadIdx.x; c < classes; c += THREADS)
        mine = merge(mine, {row[c], 1.0f});
    for (int distance = warpSize / 2; distance > 0; distance /= 2)
        mine = merge(mine, {__shfl_down(mine.top, distance), __shfl_down(mine.sum, distance)});
    if (threadIdx.x % warpSize == 0)
        of_wave[threadIdx.x / warpSize] = mine;
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    for (int wave = 1; wave < THREADS / warpSize; wave++)
        mine = merge(mine, of_wave[wave]);
    loss[blockIdx.x] = mine.top - row[label[blockIdx.x]] + logf(mine.sum);
}

extern "C" void cross_entropy(const float *logits, const int32_t *label, float *loss, int64_t rows, int64_t classes,
                              hipStream_t stream)
{
    loss_of_rows<<<rows, THREADS, 0, stream>>>(logits, label, loss, classes);
}
