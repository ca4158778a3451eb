// Wrong floyd_warshall in HIP: all intermediate vertices in one launch; its barriers hold the threads of a block
// together, and blocks read rows and columns that other blocks have not come to yet.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int TILE = 8;

__global__ void relax_through_all(float *dist, int64_t n)
{
    const int64_t j = (int64_t)blockIdx.x * TILE + threadIdx.x;
    const int64_t i = (int64_t)blockIdx.y * TILE + threadIdx.y;
    for (int64_t k = 0; k < n; k++) {
        if (i < n && j < n) {
            const float through = dist[i * n + k] + dist[k * n + j];
            if (through < dist[i * n + j])
                dist[i * n + j] = through;
        }
        __syncthreads();
    }
}

extern "C" void floyd_warshall(float *dist, int64_t n, hipStream_t stream)
{
    const dim3 blocks((n + TILE - 1) / TILE, (n + TILE - 1) / TILE);
    relax_through_all<<<blocks, dim3(TILE, TILE), 0, stream>>>(dist, n);
}
