// Baseline of transpose: tiles go through shared memory, so that reads and writes both follow rows. A column more than
// the tile needs keeps its columns in different banks.
#include <hip/hip_runtime.h>
#include <stdint.h>

#ifndef real
#define real float
#endif

constexpr int TILE = 32, ROWS = 8; // a block reads and writes so many rows of its tile at a time

__global__ void transpose_tiles(const real *x, real *out, int64_t rows, int64_t cols)
{
    __shared__ real tile[TILE][TILE + 1];
    const int64_t across = (cols + TILE - 1) / TILE;
    const int64_t top = blockIdx.x / across * TILE, left = blockIdx.x % across * TILE;
    for (int y = threadIdx.y; y < TILE; y += ROWS)
        if (top + y < rows && left + threadIdx.x < cols)
            tile[y][threadIdx.x] = x[(top + y) * cols + left + threadIdx.x];
    __syncthreads();
    for (int y = threadIdx.y; y < TILE; y += ROWS)
        if (left + y < cols && top + threadIdx.x < rows)
            out[(left + y) * rows + top + threadIdx.x] = tile[threadIdx.x][y];
}

extern "C" void transpose(const real *x, real *out, int64_t rows, int64_t cols, hipStream_t stream)
{
    // One dimension of blocks: the others end at 65535.
    const unsigned blocks = (rows + TILE - 1) / TILE * ((cols + TILE - 1) / TILE);
    transpose_tiles<<<blocks, dim3(TILE, ROWS), 0, stream>>>(x, out, rows, cols);
}
