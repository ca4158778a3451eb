// Wrong transpose in HIP: the second half of a tile's way asks for the bounds of the first; right for square matrices.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int TILE = 16;

__global__ void transpose_tiles(const float *x, float *out, int64_t rows, int64_t cols)
{
    __shared__ float tile[TILE][TILE + 1];
    const int64_t across = (cols + TILE - 1) / TILE;
    const int64_t top = blockIdx.x / across * TILE, left = blockIdx.x % across * TILE;
    const int y = threadIdx.y, c = threadIdx.x;
    const bool is_inside = top + y < rows && left + c < cols;
    if (is_inside)
        tile[y][c] = x[(top + y) * cols + left + c];
    __syncthreads();
    if (is_inside)
        out[(left + y) * rows + top + c] = tile[c][y];
}

extern "C" void transpose(const float *x, float *out, int64_t rows, int64_t cols, hipStream_t stream)
{
    const unsigned blocks = (rows + TILE - 1) / TILE * ((cols + TILE - 1) / TILE);
    transpose_tiles<<<blocks, dim3(TILE, TILE), 0, stream>>>(x, out, rows, cols);
}
