// Baseline of conv2d: a thread an element of the result; a block is of one image and filter, whose weights it shares.
#include <hip/hip_runtime.h>
#include <stdint.h>

#ifndef real
#define real float
#endif

constexpr int THREADS = 256, SIDE = 3, TAPS = SIDE * SIDE, CHANNELS = 32; // weights of so many channels at a time

__device__ real pixel(const real *plane, int64_t y, int64_t x, int64_t height, int64_t width)
{
    return y >= 0 && y < height && x >= 0 && x < width ? plane[y * width + x] : 0;
}

// The element that is added: a product, or its magnitude.
template <bool IS_MAGNITUDE> __device__ real term(real value, real factor)
{
    return IS_MAGNITUDE ? fabs(value * factor) : value * factor;
}

template <bool IS_MAGNITUDE>
__global__ void convolve(const real *image, const real *weight, real *out, int64_t channels, int64_t filters,
                         int64_t height, int64_t width)
{
    __shared__ real shared[CHANNELS * TAPS];
    const int64_t pixels = height * width, blocks = (pixels + THREADS - 1) / THREADS; // of a plane
    const int64_t plane = blockIdx.x / blocks, f = plane % filters, i = plane / filters;
    const int64_t at = blockIdx.x % blocks * THREADS + threadIdx.x;
    const int64_t y = at / width, x = at % width;
    real sum = 0;
    for (int64_t first = 0; first < channels; first += CHANNELS) {
        const int64_t some = channels - first < CHANNELS ? channels - first : CHANNELS;
        __syncthreads(); // the weights before are done with
        for (int t = threadIdx.x; t < some * TAPS; t += THREADS)
            shared[t] = weight[(f * channels + first) * TAPS + t];
        __syncthreads();
        for (int64_t c = 0; at < pixels && c < some; c++) {
            const real *from = image + (i * channels + first + c) * pixels;
            for (int tap = 0; tap < TAPS; tap++) {
                const real value = pixel(from, y + tap / SIDE - 1, x + tap % SIDE - 1, height, width);
                sum += term<IS_MAGNITUDE>(value, shared[c * TAPS + tap]);
            }
        }
    }
    if (at < pixels)
        out[plane * pixels + at] = sum;
}

template <bool IS_MAGNITUDE>
void launch(const real *image, const real *weight, real *out, int64_t images, int64_t channels, int64_t filters,
            int64_t height, int64_t width, hipStream_t stream)
{
    const unsigned blocks = images * filters * ((height * width + THREADS - 1) / THREADS);
    convolve<IS_MAGNITUDE>
        <<<blocks, THREADS, 0, stream>>>(image, weight, out, channels, filters, height, width);
}

extern "C" void conv2d(const real *image, const real *weight, real *out, int64_t images, int64_t channels,
                       int64_t filters, int64_t height, int64_t width, hipStream_t stream)
{
    launch<false>(image, weight, out, images, channels, filters, height, width, stream);
}

#ifdef KC_ORACLE
extern "C" void conv2d_magnitude(const real *image, const real *weight, real *out, int64_t images, int64_t channels,
                                 int64_t filters, int64_t height, int64_t width, hipStream_t stream)
{
    launch<true>(image, weight, out, images, channels, filters, height, width, stream);
}
#endif
