// Wrong transpose in HIP: no barrier between writing a tile and reading it, as if all waves of a block kept step.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int TILE = 32, ROWS = 8;

__global__ void transpose_tiles(const float *x, float *out, int64_t rows, int64_t cols)
{
    __shared__ float tile[TILE][TILE + 1];
    const int64_t across = (cols + TILE - 1) / TILE;
    const int64_t top = blockIdx.x / across * TILE, left = blockIdx.x % across * TILE;
    for (int y = threadIdx.y; y < TILE; y += ROWS)
        if (top + y < rows && left + threadIdx.x < cols)
            tile[y][threadIdx.x] = x[(top + y) * cols + left + threadIdx.x];
    for (int y = threadIdx.y; y < TILE; y += ROWS)
        if (left + y < cols && top + threadIdx.x < rows)
            out[(left + y) * rows + top + threadIdx.x] = tile[threadIdx.x][y];
}

extern "C" void transpose(const float *x, float *out, int64_t rows, int64_t cols, hipStream_t stream)
{
    const unsigned blocks = (rows + TILE - 1) / TILE * ((cols + TILE - 1) / TILE);
    transpose_tiles<<<blocks, dim3(TILE, ROWS), 0, stream>>>(x, out, rows, cols);
}
