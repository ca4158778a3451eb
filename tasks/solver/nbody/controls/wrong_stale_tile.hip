// Wrong nbody in HIP: the last tile is not filled up, and whole tiles are read: bodies of the tile before pull twice.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 32;

__global__ void accelerate(const float *x, const float *y, const float *z, const float *mass, float *ax, float *ay,
                           float *az, int64_t n, float floor_square)
{
    __shared__ float4 tile[THREADS];
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x, here = i < n ? i : n - 1;
    float sum_x = 0.0f, sum_y = 0.0f, sum_z = 0.0f;
    for (int64_t first = 0; first < n; first += THREADS) {
        const int64_t j = first + threadIdx.x;
        if (j < n)
            tile[threadIdx.x] = make_float4(x[j], y[j], z[j], mass[j]);
        __syncthreads();
        for (int s = 0; s < THREADS; s++) {
            const float dx = tile[s].x - x[here], dy = tile[s].y - y[here], dz = tile[s].z - z[here];
            const float square = dx * dx + dy * dy + dz * dz + floor_square;
            const float pull = tile[s].w / (square * sqrtf(square));
            sum_x += dx * pull;
            sum_y += dy * pull;
            sum_z += dz * pull;
        }
        __syncthreads();
    }
    if (i < n) {
        ax[i] = sum_x;
        ay[i] = sum_y;
        az[i] = sum_z;
    }
}

extern "C" void nbody(const float *x, const float *y, const float *z, const float *mass, float *ax, float *ay,
                      float *az, int64_t n, float soft, hipStream_t stream)
{
    const unsigned blocks = (n + THREADS - 1) / THREADS;
    accelerate<<<blocks, THREADS, 0, stream>>>(x, y, z, mass, ax, ay, az, n, soft * soft + 0x1p-10f);
}
