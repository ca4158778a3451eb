// Wrong gauss_seidel2d in HIP: a block loads its tile without the points around it, which then count as zero.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int TILE = 32;

__global__ void sweep_tiles(const float *f, float *u, int64_t rows, int64_t cols, int64_t diagonal, int64_t highest)
{
    __shared__ float tile[TILE + 2][TILE + 2];
    const int64_t top = (highest + blockIdx.x) * TILE, left = (diagonal - highest - blockIdx.x) * TILE;
    const int y = threadIdx.x;
    for (int row = 0; row < TILE + 2; row++) {
        for (int x = y; x < TILE + 2; x += TILE) {
            const int64_t i = top + row - 1, j = left + x - 1;
            const bool own = row > 0 && row <= TILE && x > 0 && x <= TILE;
            tile[row][x] = own && i < rows && j < cols ? u[i * cols + j] : 0.0f;
        }
    }
    __syncthreads();
    for (int step = 0; step < 2 * TILE - 1; step++) {
        const int x = step - y;
        if (x >= 0 && x < TILE && top + y < rows && left + x < cols) {
            const float beside = tile[y][x + 1] + tile[y + 1][x] + tile[y + 1][x + 2] + tile[y + 2][x + 1];
            tile[y + 1][x + 1] = 0.25f * (beside + f[(top + y) * cols + left + x]);
        }
        __syncthreads();
    }
    for (int row = 0; row < TILE; row++)
        if (top + row < rows && left + y < cols)
            u[(top + row) * cols + left + y] = tile[row + 1][y + 1];
}

extern "C" void gauss_seidel2d(const float *f, float *u, int64_t rows, int64_t cols, hipStream_t stream)
{
    const int64_t down = (rows + TILE - 1) / TILE, across = (cols + TILE - 1) / TILE;
    for (int64_t diagonal = 0; diagonal < down + across - 1; diagonal++) {
        const int64_t highest = diagonal < across ? 0 : diagonal - across + 1;
        const int64_t lowest = diagonal < down ? diagonal : down - 1;
        sweep_tiles<<<lowest - highest + 1, TILE, 0, stream>>>(f, u, rows, cols, diagonal, highest);
    }
}
