// Baseline of floyd_warshall: one launch an intermediate vertex, one thread a pair of vertices.
#include <hip/hip_runtime.h>
#include <stdint.h>
#ifndef real
#define real float
#endif

constexpr int WIDE = 32, HIGH = 8;

// Row and column k are read and stay as they are: a way to k through k is never shorter.
__global__ void relax_through(real *dist, int64_t n, int64_t k)
{
    const int64_t j = (int64_t)blockIdx.x * WIDE + threadIdx.x;
    const int64_t i = (int64_t)blockIdx.y * HIGH + threadIdx.y;
    if (i >= n || j >= n)
        return;
    const real through = dist[i * n + k] + dist[k * n + j];
    if (through < dist[i * n + j])
        dist[i * n + j] = through;
}

extern "C" void floyd_warshall(real *dist, int64_t n, hipStream_t stream)
{
    // No GPU holds a matrix of the 524280 rows at which this second dimension ends.
    const dim3 blocks((n + WIDE - 1) / WIDE, (n + HIGH - 1) / HIGH);
    for (int64_t k = 0; k < n; k++)
        relax_through<<<blocks, dim3(WIDE, HIGH), 0, stream>>>(dist, n, k);
}
