// Baseline of gauss_seidel2d: one launch an antidiagonal, whose points do not depend on each other; one thread a point.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 128;

__global__ void sweep_points(const float *f, float *u, int64_t rows, int64_t cols, int64_t diagonal, int64_t top,
                             int64_t bottom)
{
    const int64_t i = top + (int64_t)blockIdx.x * THREADS + threadIdx.x, j = diagonal - i;
    if (i > bottom)
        return;
    float *at = u + i * cols + j;
    const float north = i > 0 ? at[-cols] : 0.0f;
    const float west = j > 0 ? at[-1] : 0.0f;
    const float east = j < cols - 1 ? at[1] : 0.0f;
    const float south = i < rows - 1 ? at[cols] : 0.0f;
    *at = 0.25f * (north + west + east + south + f[i * cols + j]);
}

extern "C" void gauss_seidel2d(const float *f, float *u, int64_t rows, int64_t cols, hipStream_t stream)
{
    for (int64_t diagonal = 0; diagonal < rows + cols - 1; diagonal++) {
        const int64_t top = diagonal < cols ? 0 : diagonal - cols + 1;
        const int64_t bottom = diagonal < rows ? diagonal : rows - 1;
        const unsigned blocks = (bottom - top + THREADS) / THREADS;
        sweep_points<<<blocks, THREADS, 0, stream>>>(f, u, rows, cols, diagonal, top, bottom);
    }
}
