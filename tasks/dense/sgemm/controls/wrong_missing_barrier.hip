// Wrong sgemm in HIP: the next tiles are loaded while other threads still read the ones before; a barrier is missing.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int TILE = 16;

__global__ void multiply_tiles(const float *A, const float *B, float *C, int64_t m, int64_t n, int64_t k)
{
    __shared__ float a[TILE][TILE], b[TILE][TILE];
    const int64_t across = (n + TILE - 1) / TILE;
    const int y = threadIdx.y, x = threadIdx.x;
    const int64_t i = blockIdx.x / across * TILE + y, j = blockIdx.x % across * TILE + x;
    float sum = 0.0f;
    for (int64_t first = 0; first < k; first += TILE) {
        a[y][x] = i < m && first + x < k ? A[i * k + first + x] : 0.0f;
        b[y][x] = first + y < k && j < n ? B[(first + y) * n + j] : 0.0f;
        __syncthreads();
        for (int p = 0; p < TILE; p++)
            sum += a[y][p] * b[p][x];
    }
    if (i < m && j < n)
        C[i * n + j] = sum;
}

extern "C" void sgemm(const float *A, const float *B, float *C, int64_t m, int64_t n, int64_t k, hipStream_t stream)
{
    const unsigned blocks = (m + TILE - 1) / TILE * ((n + TILE - 1) / TILE);
    multiply_tiles<<<blocks, dim3(TILE, TILE), 0, stream>>>(A, B, C, m, n, k);
}
