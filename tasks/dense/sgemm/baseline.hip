// Baseline of sgemm: a block computes a tile of C, one thread an element, from tiles of A and B in shared memory.
#include <hip/hip_runtime.h>
#include <stdint.h>
#ifndef real
#define real float
#endif

constexpr int TILE = 16;

__global__ void multiply_tiles(const real *A, const real *B, real *C, int64_t m, int64_t n, int64_t k)
{
    __shared__ real a[TILE][TILE], b[TILE][TILE];
    const int64_t across = (n + TILE - 1) / TILE;
    const int y = threadIdx.y, x = threadIdx.x;
    const int64_t i = blockIdx.x / across * TILE + y, j = blockIdx.x % across * TILE + x;
    real sum = 0;
    for (int64_t first = 0; first < k; first += TILE) {
        a[y][x] = i < m && first + x < k ? A[i * k + first + x] : 0;
        b[y][x] = first + y < k && j < n ? B[(first + y) * n + j] : 0;
        __syncthreads();
        for (int p = 0; p < TILE; p++)
            sum += a[y][p] * b[p][x];
        __syncthreads();
    }
    if (i < m && j < n)
        C[i * n + j] = sum;
}

extern "C" void sgemm(const real *A, const real *B, real *C, int64_t m, int64_t n, int64_t k, hipStream_t stream)
{
    // One dimension of blocks: the others end at 65535.
    const unsigned blocks = (m + TILE - 1) / TILE * ((n + TILE - 1) / TILE);
    multiply_tiles<<<blocks, dim3(TILE, TILE), 0, stream>>>(A, B, C, m, n, k);
}

#ifdef KC_ORACLE
__global__ void multiply_magnitudes(const real *A, const real *B, real *C, int64_t m, int64_t n, int64_t k)
{
    const int64_t across = (n + TILE - 1) / TILE;
    const int64_t i = blockIdx.x / across * TILE + threadIdx.y, j = blockIdx.x % across * TILE + threadIdx.x;
    if (i >= m || j >= n)
        return;
    real sum = 0;
    for (int64_t p = 0; p < k; p++)
        sum += fabs(A[i * k + p] * B[p * n + j]);
    C[i * n + j] = sum;
}

extern "C" void sgemm_magnitude(const real *A, const real *B, real *C, int64_t m, int64_t n, int64_t k,
                                hipStream_t stream)
{
    const unsigned blocks = (m + TILE - 1) / TILE * ((n + TILE - 1) / TILE);
    multiply_magnitudes<<<blocks, dim3(TILE, TILE), 0, stream>>>(A, B, C, m, n, k);
}
#endif
