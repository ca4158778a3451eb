// Honest nbody in HIP: a block a body; its threads share the sources, shuffles and shared memory add up the threads.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 128, NARROWEST_WAVE = 32;

__device__ float wave_sum(float value)
{
    for (int distance = warpSize / 2; distance > 0; distance /= 2)
        value += __shfl_down(value, distance);
    return value;
}

// Writes the sums over the block of the three parts of `mine`.
__device__ void write_sums(float3 mine, float *ax, float *ay, float *az)
{
    __shared__ float3 of_wave[THREADS / NARROWEST_WAVE];
    const float3 sum = make_float3(wave_sum(mine.x), wave_sum(mine.y), wave_sum(mine.z));
    if (threadIdx.x % warpSize == 0)
        of_wave[threadIdx.x / warpSize] = sum;
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    float3 all = sum;
    for (int wave = 1; wave < THREADS / warpSize; wave++) {
        all.x += of_wave[wave].x;
        all.y += of_wave[wave].y;
        all.z += of_wave[wave].z;
    }
    *ax = all.x;
    *ay = all.y;
    *az = all.z;
}

__global__ void accelerate(const float *x, const float *y, const float *z, const float *mass, float *ax, float *ay,
                           float *az, int64_t n, float floor_square)
{
    const unsigned i = blockIdx.x;
    const float from_x = x[i], from_y = y[i], from_z = z[i];
    float3 sum = make_float3(0.0f, 0.0f, 0.0f);
    for (int64_t j = threadIdx.x; j < n; j += THREADS) {
        const float dx = x[j] - from_x, dy = y[j] - from_y, dz = z[j] - from_z;
        const float square = fmaf(dx, dx, fmaf(dy, dy, fmaf(dz, dz, floor_square)));
        const float pull = mass[j] / (square * sqrtf(square));
        sum.x = fmaf(dx, pull, sum.x);
        sum.y = fmaf(dy, pull, sum.y);
        sum.z = fmaf(dz, pull, sum.z);
    }
    write_sums(sum, ax + i, ay + i, az + i);
}

extern "C" void nbody(const float *x, const float *y, const float *z, const float *mass, float *ax, float *ay,
                      float *az, int64_t n, float soft, hipStream_t stream)
{
    accelerate<<<n, THREADS, 0, stream>>>(x, y, z, mass, ax, ay, az, n, soft * soft + 0x1p-10f);
}
