// Honest jacobi2d in HIP: a block loads a tile and the points around it into shared memory, and averages from there.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int WIDE = 32, HIGH = 8, THREADS = WIDE * HIGH;

// The tile from `top` and `left`, with one point more on every side; points outside the grid are left out.
__device__ void load_with_sides(float (*tile)[WIDE + 2], const float *x, int64_t rows, int64_t cols, int64_t top,
                                int64_t left)
{
    for (int e = threadIdx.y * WIDE + threadIdx.x; e < (HIGH + 2) * (WIDE + 2); e += THREADS) {
        const int64_t r = top + e / (WIDE + 2) - 1, c = left + e % (WIDE + 2) - 1;
        if (r >= 0 && r < rows && c >= 0 && c < cols)
            tile[e / (WIDE + 2)][e % (WIDE + 2)] = x[r * cols + c];
    }
}

__global__ void average_tiles(const float *x, float *out, int64_t rows, int64_t cols)
{
    __shared__ float tile[HIGH + 2][WIDE + 2];
    const int64_t across = (cols + WIDE - 1) / WIDE;
    const int64_t top = blockIdx.x / across * HIGH, left = blockIdx.x % across * WIDE;
    load_with_sides(tile, x, rows, cols, top, left);
    __syncthreads();
    const int64_t r = top + threadIdx.y, c = left + threadIdx.x;
    const int i = threadIdx.y + 1, j = threadIdx.x + 1;
    if (r >= rows || c >= cols)
        return;
    const bool inside = r > 0 && r < rows - 1 && c > 0 && c < cols - 1;
    const float centre = tile[i][j];
    const float beside = inside ? tile[i - 1][j] + tile[i + 1][j] + tile[i][j - 1] + tile[i][j + 1] : 0.0f;
    out[r * cols + c] = inside ? 0.2f * (centre + beside) : centre;
}

extern "C" void jacobi2d(const float *x, float *out, int64_t rows, int64_t cols, hipStream_t stream)
{
    const unsigned blocks = (rows + HIGH - 1) / HIGH * ((cols + WIDE - 1) / WIDE);
    average_tiles<<<blocks, dim3(WIDE, HIGH), 0, stream>>>(x, out, rows, cols);
}
