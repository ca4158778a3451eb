// Honest gauss_seidel2d in HIP: one launch an antidiagonal of tiles. A block holds a tile and its neighbours in shared
// memory, and sweeps the tile's own antidiagonals, one thread a row.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int TILE = 64;

// A tile and one point on every side; zero outside the grid.
__device__ void load_with_sides(float (*tile)[TILE + 2], const float *u, int64_t rows, int64_t cols, int64_t top,
                                int64_t left)
{
    for (int y = 0; y < TILE + 2; y++) {
        for (int x = threadIdx.x; x < TILE + 2; x += TILE) {
            const int64_t i = top + y - 1, j = left + x - 1;
            tile[y][x] = i >= 0 && i < rows && j >= 0 && j < cols ? u[i * cols + j] : 0.0f;
        }
    }
}

__device__ void load(float (*tile)[TILE + 1], const float *f, int64_t rows, int64_t cols, int64_t top, int64_t left)
{
    const int64_t j = left + threadIdx.x;
    for (int y = 0; y < TILE; y++)
        tile[y][threadIdx.x] = top + y < rows && j < cols ? f[(top + y) * cols + j] : 0.0f;
}

__device__ void store(const float (*tile)[TILE + 2], float *u, int64_t rows, int64_t cols, int64_t top, int64_t left)
{
    const int64_t j = left + threadIdx.x;
    for (int y = 0; y < TILE; y++)
        if (top + y < rows && j < cols)
            u[(top + y) * cols + j] = tile[y + 1][threadIdx.x + 1];
}

// `high` and `wide`: how much of the tile lies in the grid.
__device__ void sweep(float (*tile)[TILE + 2], const float (*force)[TILE + 1], int64_t high, int64_t wide)
{
    const int y = threadIdx.x;
    for (int diagonal = 0; diagonal < 2 * TILE - 1; diagonal++) {
        const int x = diagonal - y;
        if (y < high && x >= 0 && x < TILE && x < wide) {
            const float beside = tile[y][x + 1] + tile[y + 1][x] + tile[y + 1][x + 2] + tile[y + 2][x + 1];
            tile[y + 1][x + 1] = 0.25f * (beside + force[y][x]);
        }
        __syncthreads();
    }
}

__global__ void sweep_tiles(const float *f, float *u, int64_t rows, int64_t cols, int64_t diagonal, int64_t highest)
{
    __shared__ float tile[TILE + 2][TILE + 2], force[TILE][TILE + 1];
    const int64_t top = (highest + blockIdx.x) * TILE, left = (diagonal - highest - blockIdx.x) * TILE;
    load_with_sides(tile, u, rows, cols, top, left);
    load(force, f, rows, cols, top, left);
    __syncthreads();
    sweep(tile, force, rows - top, cols - left);
    store(tile, u, rows, cols, top, left);
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
