// Baseline of nbody: one thread a body; a block goes through all bodies, a tile of them at a time in shared memory.
#include <hip/hip_runtime.h>
#include <stdint.h>
#ifndef real
#define real float
#endif

constexpr int THREADS = 64;

struct Vector {
    real x, y, z;
};

struct alignas(4 * sizeof(real)) Body {
    real x, y, z, mass;
};

// How `source` accelerates a body at `at`.
__device__ Vector pull_of(Body source, Vector at, real floor_square)
{
    const real dx = source.x - at.x, dy = source.y - at.y, dz = source.z - at.z;
    const real square = dx * dx + dy * dy + dz * dz + floor_square;
    const real pull = source.mass / (square * sqrt(square));
    return {dx * pull, dy * pull, dz * pull};
}

__global__ void accelerate(const real *x, const real *y, const real *z, const real *mass, real *ax, real *ay,
                           real *az, int64_t n, real floor_square)
{
    __shared__ Body tile[THREADS];
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x, here = i < n ? i : n - 1;
    const Vector at = {x[here], y[here], z[here]};
    Vector sum = {0, 0, 0};
    for (int64_t first = 0; first < n; first += THREADS) {
        const int64_t j = first + threadIdx.x;
        if (j < n)
            tile[threadIdx.x] = {x[j], y[j], z[j], mass[j]};
        __syncthreads();
        const int count = n - first < THREADS ? (int)(n - first) : THREADS;
        for (int s = 0; s < count; s++) {
            const Vector pull = pull_of(tile[s], at, floor_square);
            sum.x += pull.x;
            sum.y += pull.y;
            sum.z += pull.z;
        }
        __syncthreads();
    }
    if (i < n) {
        ax[i] = sum.x;
        ay[i] = sum.y;
        az[i] = sum.z;
    }
}

extern "C" void nbody(const real *x, const real *y, const real *z, const real *mass, real *ax, real *ay,
                      real *az, int64_t n, real soft, hipStream_t stream)
{
    const unsigned blocks = (n + THREADS - 1) / THREADS;
    accelerate<<<blocks, THREADS, 0, stream>>>(x, y, z, mass, ax, ay, az, n, soft * soft + (real)0x1p-10);
}

#ifdef KC_ORACLE
__global__ void add_magnitudes(const real *x, const real *y, const real *z, const real *mass, real *ax, real *ay,
                               real *az, int64_t n, real floor_square)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= n)
        return;
    const Vector at = {x[i], y[i], z[i]};
    Vector sum = {0, 0, 0};
    for (int64_t j = 0; j < n; j++) {
        const Vector pull = pull_of({x[j], y[j], z[j], mass[j]}, at, floor_square);
        sum.x += fabs(pull.x);
        sum.y += fabs(pull.y);
        sum.z += fabs(pull.z);
    }
    ax[i] = sum.x;
    ay[i] = sum.y;
    az[i] = sum.z;
}

extern "C" void nbody_magnitude(const real *x, const real *y, const real *z, const real *mass, real *ax, real *ay,
                                real *az, int64_t n, real soft, hipStream_t stream)
{
    const unsigned blocks = (n + THREADS - 1) / THREADS;
    add_magnitudes<<<blocks, THREADS, 0, stream>>>(x, y, z, mass, ax, ay, az, n, soft * soft + (real)0x1p-10);
}
#endif
