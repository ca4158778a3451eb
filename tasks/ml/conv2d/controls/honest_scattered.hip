// Honest conv2d in HIP: a thread a column of the result; going down the image, it keeps the sums of three rows, to which
// each row of pixels adds.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 64;

__global__ void convolve_columns(const float *image, const float *weight, float *out, int64_t columns,
                                 int64_t channels, int64_t filters, int64_t height, int64_t width)
{
    const int64_t column = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (column >= columns)
        return;
    const int64_t x = column % width, plane = column / width, f = plane % filters, i = plane / filters;
    float *to = out + plane * height * width + x;
    float above = 0.0f, here = 0.0f;
    for (int64_t y = 0; y < height; y++) {
        float below = 0.0f;
        for (int64_t c = 0; c < channels; c++) {
            const float *row = image + ((i * channels + c) * height + y) * width;
            const float *w = weight + (f * channels + c) * 9;
            const float left = x > 0 ? row[x - 1] : 0.0f, own = row[x], right = x + 1 < width ? row[x + 1] : 0.0f;
            above += left * w[6] + own * w[7] + right * w[8];
            here += left * w[3] + own * w[4] + right * w[5];
            below += left * w[0] + own * w[1] + right * w[2];
        }
        if (y > 0)
            to[(y - 1) * width] = above;
        above = here;
        here = below;
    }
    to[(height - 1) * width] = above;
}

extern "C" void conv2d(const float *image, const float *weight, float *out, int64_t images, int64_t channels,
                       int64_t filters, int64_t height, int64_t width, hipStream_t stream)
{
    const int64_t columns = images * filters * width;
    const unsigned blocks = (columns + THREADS - 1) / THREADS;
    convolve_columns<<<blocks, THREADS, 0, stream>>>(image, weight, out, columns, channels, filters, height, width);
}
