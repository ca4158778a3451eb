// Honest floyd_warshall in HIP: sixteen intermediate vertices a round, on tiles in shared memory. A round is three
// launches: the tile that holds these vertices alone, then the tiles of its row and its column, then all others.
#include <hip/hip_runtime.h>
#include <math.h>
#include <stdint.h>

constexpr int TILE = 16;

enum Phase { MIDDLE, CROSS, OTHERS };

// Where the block's tile lies, in tiles.
struct Place {
    int64_t row, column;
};

__device__ Place place_of(Phase phase, int64_t middle, int64_t tiles)
{
    const int64_t block = blockIdx.x;
    if (phase == MIDDLE)
        return {middle, middle};
    if (phase == CROSS)
        return block < tiles ? Place{middle, block} : Place{block - tiles, middle};
    return {block / tiles, block % tiles};
}

__device__ void load(float (*tile)[TILE], const float *dist, int64_t n, int64_t row, int64_t column)
{
    const int64_t i = row * TILE + threadIdx.y, j = column * TILE + threadIdx.x;
    tile[threadIdx.y][threadIdx.x] = i < n && j < n ? dist[i * n + j] : INFINITY;
}

// Through all vertices of a round, one after the other; `left` and `above` may be `own`.
__device__ void relax(float (*own)[TILE], const float (*left)[TILE], const float (*above)[TILE])
{
    const int y = threadIdx.y, x = threadIdx.x;
    for (int k = 0; k < TILE; k++) {
        __syncthreads();
        const float through = left[y][k] + above[k][x];
        if (through < own[y][x])
            own[y][x] = through;
    }
}

__global__ void relax_tiles(float *dist, int64_t n, int64_t middle, int64_t tiles, Phase phase)
{
    __shared__ float own[TILE][TILE], of_row[TILE][TILE], of_column[TILE][TILE];
    const Place at = place_of(phase, middle, tiles);
    const bool in_row = at.row == middle, in_column = at.column == middle;
    if ((phase == CROSS && in_row && in_column) || (phase == OTHERS && (in_row || in_column)))
        return;
    load(own, dist, n, at.row, at.column);
    load(of_row, dist, n, at.row, middle);
    load(of_column, dist, n, middle, at.column);
    relax(own, in_column ? own : of_row, in_row ? own : of_column);
    const int64_t i = at.row * TILE + threadIdx.y, j = at.column * TILE + threadIdx.x;
    if (i < n && j < n)
        dist[i * n + j] = own[threadIdx.y][threadIdx.x];
}

extern "C" void floyd_warshall(float *dist, int64_t n, hipStream_t stream)
{
    const int64_t tiles = (n + TILE - 1) / TILE;
    const dim3 threads(TILE, TILE);
    for (int64_t middle = 0; middle < tiles; middle++) {
        relax_tiles<<<1, threads, 0, stream>>>(dist, n, middle, tiles, MIDDLE);
        relax_tiles<<<2 * tiles, threads, 0, stream>>>(dist, n, middle, tiles, CROSS);
        relax_tiles<<<tiles * tiles, threads, 0, stream>>>(dist, n, middle, tiles, OTHERS);
    }
}
