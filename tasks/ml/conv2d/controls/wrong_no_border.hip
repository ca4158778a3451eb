// Wrong conv2d in HIP: a thread reads its own pixel into the tile, and what lies beside the tile counts as zero; right
// for images that fit into one tile.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int TILE = 16, EDGED = TILE + 2, TAPS = 9;

__global__ void convolve_tiles(const float *image, const float *weight, float *out, int64_t channels, int64_t filters,
                               int64_t height, int64_t width)
{
    __shared__ float kept[EDGED][EDGED];
    const int64_t across = (width + TILE - 1) / TILE, down = (height + TILE - 1) / TILE;
    const int x = threadIdx.x, y = threadIdx.y;
    const int64_t col = blockIdx.x % across * TILE + x, row = blockIdx.x / across % down * TILE + y;
    const int64_t plane = blockIdx.x / (across * down), f = plane % filters, i = plane / filters;
    const bool is_inside = row < height && col < width;
    for (int e = y * TILE + x; e < EDGED * EDGED; e += TILE * TILE)
        kept[e / EDGED][e % EDGED] = 0.0f;
    float sum = 0.0f;
    for (int64_t c = 0; c < channels; c++) {
        __syncthreads();
        if (is_inside)
            kept[y + 1][x + 1] = image[((i * channels + c) * height + row) * width + col];
        __syncthreads();
        for (int tap = 0; tap < TAPS; tap++)
            sum += kept[y + tap / 3][x + tap % 3] * weight[(f * channels + c) * TAPS + tap];
    }
    if (is_inside)
        out[(plane * height + row) * width + col] = sum;
}

extern "C" void conv2d(const float *image, const float *weight, float *out, int64_t images, int64_t channels,
                       int64_t filters, int64_t height, int64_t width, hipStream_t stream)
{
    const unsigned blocks = (width + TILE - 1) / TILE * ((height + TILE - 1) / TILE) * images * filters;
    convolve_tiles<<<blocks, dim3(TILE, TILE), 0, stream>>>(image, weight, out, channels, filters, height, width);
}
