// Baseline of nbody: one thread a body; a block goes through all bodies, a tile of them at a time in shared memory.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 64;

__device__ void add_pull(float3 &sum, float3 from, float4 source, float floor_square)
{
    const float dx = source.x - from.x, dy = source.y - from.y, dz = source.z - from.z;
    const float square = dx * dx + dy * dy + dz * dz + floor_square;
    const float pull = source.w / (square * sqrtf(square));
    sum.x += dx * pull;
    sum.y += dy * pull;
    sum.z += dz * pull;
}

__global__ void accelerate(const float *x, const float *y, const float *z, const float *mass, float *ax, float *ay,
                           float *az, int64_t n, float floor_square)
{
    __shared__ float4 tile[THREADS]; // place and mass
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x, here = i < n ? i : n - 1;
    const float3 from = make_float3(x[here], y[here], z[here]);
    float3 sum = make_float3(0.0f, 0.0f, 0.0f);
    for (int64_t first = 0; first < n; first += THREADS) {
        const int64_t j = first + threadIdx.x;
        if (j < n)
            tile[threadIdx.x] = make_float4(x[j], y[j], z[j], mass[j]);
        __syncthreads();
        const int count = n - first < THREADS ? (int)(n - first) : THREADS;
        for (int s = 0; s < count; s++)
            add_pull(sum, from, tile[s], floor_square);
        __syncthreads();
    }
    if (i < n) {
        ax[i] = sum.x;
        ay[i] = sum.y;
        az[i] = sum.z;
    }
}

extern "C" void nbody(const float *x, const float *y, const float *z, const float *mass, float *ax, float *ay,
                      float *az, int64_t n, float soft, hipStream_t stream)
{
    const unsigned blocks = (n + THREADS - 1) / THREADS;
    accelerate<<<blocks, THREADS, 0, stream>>>(x, y, z, mass, ax, ay, az, n, soft * soft + 0x1p-10f);
}
