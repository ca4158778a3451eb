// Honest sgemm in HIP: a block computes 64 x 64 elements, a thread 4 x 4 of them in registers.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int SIDE = 16, EACH = 4, TILE = SIDE * EACH, DEPTH = 16, THREADS = SIDE * SIDE;

// Part of A, TILE rows by DEPTH, turned so that a column of it lies together; zero outside of A.
__device__ void load_a(float (*a)[TILE + 1], const float *A, int64_t top, int64_t first, int64_t m, int64_t k)
{
    for (int e = threadIdx.x; e < TILE * DEPTH; e += THREADS) {
        const int row = e / DEPTH, p = e % DEPTH;
        a[p][row] = top + row < m && first + p < k ? A[(top + row) * k + first + p] : 0.0f;
    }
}

// Part of B, DEPTH rows by TILE; zero outside of B.
__device__ void load_b(float (*b)[TILE + 1], const float *B, int64_t first, int64_t left, int64_t k, int64_t n)
{
    for (int e = threadIdx.x; e < TILE * DEPTH; e += THREADS) {
        const int p = e / TILE, column = e % TILE;
        b[p][column] = first + p < k && left + column < n ? B[(first + p) * n + left + column] : 0.0f;
    }
}

__device__ void add_products(float (*sum)[EACH], const float *a, const float *b, int y, int x)
{
    for (int i = 0; i < EACH; i++)
        for (int j = 0; j < EACH; j++)
            sum[i][j] += a[y + i * SIDE] * b[x + j * SIDE];
}

__global__ __launch_bounds__(THREADS) void multiply_tiles(const float *A, const float *B, float *C, int64_t m,
                                                          int64_t n, int64_t k)
{
    __shared__ float a[DEPTH][TILE + 1], b[DEPTH][TILE + 1];
    const int64_t across = (n + TILE - 1) / TILE;
    const int64_t top = blockIdx.x / across * TILE, left = blockIdx.x % across * TILE;
    const int y = threadIdx.x / SIDE, x = threadIdx.x % SIDE;
    float sum[EACH][EACH] = {};
    for (int64_t first = 0; first < k; first += DEPTH) {
        load_a(a, A, top, first, m, k);
        load_b(b, B, first, left, k, n);
        __syncthreads();
        for (int p = 0; p < DEPTH; p++)
            add_products(sum, a[p], b[p], y, x);
        __syncthreads();
    }
    for (int i = 0; i < EACH; i++)
        for (int j = 0; j < EACH; j++)
            if (top + y + i * SIDE < m && left + x + j * SIDE < n)
                C[(top + y + i * SIDE) * n + left + x + j * SIDE] = sum[i][j];
}

extern "C" void sgemm(const float *A, const float *B, float *C, int64_t m, int64_t n, int64_t k, hipStream_t stream)
{
    const unsigned blocks = (m + TILE - 1) / TILE * ((n + TILE - 1) / TILE);
    multiply_tiles<<<blocks, THREADS, 0, stream>>>(A, B, C, m, n, k);
}
