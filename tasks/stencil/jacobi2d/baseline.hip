// Baseline of jacobi2d: one thread a point; the border is copied.
#include <hip/hip_runtime.h>
#include <stdint.h>
#ifndef real
#define real float
#endif

constexpr int WIDE = 64, HIGH = 4, MOST_DOWN = 65535;

__global__ void average_points(const real *x, real *out, int64_t rows, int64_t cols)
{
    const int64_t c = (int64_t)blockIdx.x * WIDE + threadIdx.x;
    if (c >= cols)
        return;
    for (int64_t r = (int64_t)blockIdx.y * HIGH + threadIdx.y; r < rows; r += (int64_t)gridDim.y * HIGH) {
        const int64_t i = r * cols + c;
        if (r == 0 || r == rows - 1 || c == 0 || c == cols - 1)
            out[i] = x[i];
        else
            out[i] = (real)0.2 * (x[i] + x[i - cols] + x[i + cols] + x[i - 1] + x[i + 1]);
    }
}

extern "C" void jacobi2d(const real *x, real *out, int64_t rows, int64_t cols, hipStream_t stream)
{
    const int64_t down = (rows + HIGH - 1) / HIGH;
    const dim3 blocks((cols + WIDE - 1) / WIDE, down < MOST_DOWN ? down : MOST_DOWN);
    average_points<<<blocks, dim3(WIDE, HIGH), 0, stream>>>(x, out, rows, cols);
}

#ifdef KC_ORACLE
__global__ void average_magnitudes(const real *x, real *out, int64_t rows, int64_t cols)
{
    const int64_t c = (int64_t)blockIdx.x * WIDE + threadIdx.x;
    if (c >= cols)
        return;
    for (int64_t r = (int64_t)blockIdx.y * HIGH + threadIdx.y; r < rows; r += (int64_t)gridDim.y * HIGH) {
        const real *at = x + r * cols + c;
        real sum = fabs(*at);
        if (r > 0 && r < rows - 1 && c > 0 && c < cols - 1)
            sum = (real)0.2 * (sum + fabs(at[-cols]) + fabs(at[cols]) + fabs(at[-1]) + fabs(at[1]));
        out[r * cols + c] = sum;
    }
}

extern "C" void jacobi2d_magnitude(const real *x, real *out, int64_t rows, int64_t cols, hipStream_t stream)
{
    const int64_t down = (rows + HIGH - 1) / HIGH;
    const dim3 blocks((cols + WIDE - 1) / WIDE, down < MOST_DOWN ? down : MOST_DOWN);
    average_magnitudes<<<blocks, dim3(WIDE, HIGH), 0, stream>>>(x, out, rows, cols);
}
#endif
