// Honest conv2d in HIP: a block computes a tile of an image for eight filters; the tile and a border of one pixel lie in
// shared memory, a channel at a time, and a thread keeps its pixel's eight sums.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int TILE = 16, EDGED = TILE + 2, THREADS = TILE * TILE, FILTERS = 8, TAPS = 9;

__global__ void convolve_tiles(const float *image, const float *weight, float *out, int64_t channels, int64_t filters,
                               int64_t height, int64_t width)
{
    __shared__ float kept[EDGED][EDGED], factors[FILTERS][TAPS];
    const int64_t across = (width + TILE - 1) / TILE, down = (height + TILE - 1) / TILE;
    const int64_t groups = (filters + FILTERS - 1) / FILTERS;
    const int64_t left = blockIdx.x % across * TILE, top = blockIdx.x / across % down * TILE;
    const int64_t f = blockIdx.x / (across * down) % groups * FILTERS, i = blockIdx.x / (across * down * groups);
    const int me = threadIdx.x, y = me / TILE, x = me % TILE;
    float sums[FILTERS] = {};
    for (int64_t c = 0; c < channels; c++) {
        const float *plane = image + (i * channels + c) * height * width;
        __syncthreads(); // the channel before is done with
        for (int e = me; e < EDGED * EDGED; e += THREADS) {
            const int64_t row = top + e / EDGED - 1, col = left + e % EDGED - 1;
            const bool is_inside = row >= 0 && row < height && col >= 0 && col < width;
            kept[e / EDGED][e % EDGED] = is_inside ? plane[row * width + col] : 0.0f;
        }
        if (me < FILTERS * TAPS) {
            const int64_t filter = f + me / TAPS;
            factors[me / TAPS][me % TAPS] = filter < filters ? weight[(filter * channels + c) * TAPS + me % TAPS] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int tap = 0; tap < TAPS; tap++)
#pragma unroll
            for (int k = 0; k < FILTERS; k++)
                sums[k] = fmaf(kept[y + tap / 3][x + tap % 3], factors[k][tap], sums[k]);
    }
    if (top + y >= height || left + x >= width)
        return;
#pragma unroll
    for (int k = 0; k < FILTERS; k++)
        if (f + k < filters)
            out[((i * filters + f + k) * height + top + y) * width + left + x] = sums[k];
}

extern "C" void conv2d(const float *image, const float *weight, float *out, int64_t images, int64_t channels,
                       int64_t filters, int64_t height, int64_t width, hipStream_t stream)
{
    const int64_t tiles = (width + TILE - 1) / TILE * ((height + TILE - 1) / TILE);
    const unsigned blocks = tiles * ((filters + FILTERS - 1) / FILTERS) * images;
    convolve_tiles<<<blocks, THREADS, 0, stream>>>(image, weight, out, channels, filters, height, width);
}
