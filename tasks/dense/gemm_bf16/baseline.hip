// Baseline of gemm_bf16: a block computes 64 x 64 elements, a thread 4 x 4 of them, from tiles in shared memory that hold
// A and B in the type that sums have.
#include <hip/hip_bf16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

#ifndef real
#define real float
#endif

#ifdef KC_ORACLE
typedef real narrow;
__device__ real widened(narrow x) { return x; }
#else
typedef __hip_bfloat16 narrow;
__device__ real widened(narrow x) { return __bfloat162float(x); }
#endif

constexpr int SIDE = 16, EACH = 4, TILE = SIDE * EACH, DEPTH = 16, THREADS = SIDE * SIDE;

struct Product {
    __device__ static real of(real x, real y) { return x * y; }
};

// Part of A, TILE rows by DEPTH, turned so that a column of it lies together; zero outside of A.
__device__ void load_a(real (*a)[TILE + 1], const narrow *A, int64_t top, int64_t first, int64_t m, int64_t k)
{
    for (int e = threadIdx.x; e < TILE * DEPTH; e += THREADS) {
        const int row = e / DEPTH, p = e % DEPTH;
        a[p][row] = top + row < m && first + p < k ? widened(A[(top + row) * k + first + p]) : real(0);
    }
}

// Part of B, DEPTH rows by TILE; zero outside of B.
__device__ void load_b(real (*b)[TILE + 1], const narrow *B, int64_t first, int64_t left, int64_t k, int64_t n)
{
    for (int e = threadIdx.x; e < TILE * DEPTH; e += THREADS) {
        const int p = e / TILE, column = e % TILE;
        b[p][column] = first + p < k && left + column < n ? widened(B[(first + p) * n + left + column]) : real(0);
    }
}

template <class Term>
__device__ void add_terms(real (*sum)[EACH], const real *a, const real *b, int y, int x)
{
    for (int i = 0; i < EACH; i++)
        for (int j = 0; j < EACH; j++)
            sum[i][j] += Term::of(a[y + i * SIDE], b[x + j * SIDE]);
}

template <class Term>
__global__ __launch_bounds__(THREADS) void multiply_tiles(const narrow *A, const narrow *B, real *C, int64_t m,
                                                          int64_t n, int64_t k)
{
    __shared__ real a[DEPTH][TILE + 1], b[DEPTH][TILE + 1];
    const int64_t across = (n + TILE - 1) / TILE;
    const int64_t top = blockIdx.x / across * TILE, left = blockIdx.x % across * TILE;
    const int y = threadIdx.x / SIDE, x = threadIdx.x % SIDE;
    real sum[EACH][EACH] = {};
    for (int64_t first = 0; first < k; first += DEPTH) {
        load_a(a, A, top, first, m, k);
        load_b(b, B, first, left, k, n);
        __syncthreads();
        for (int p = 0; p < DEPTH; p++)
            add_terms<Term>(sum, a[p], b[p], y, x);
        __syncthreads();
    }
    for (int i = 0; i < EACH; i++)
        for (int j = 0; j < EACH; j++)
            if (top + y + i * SIDE < m && left + x + j * SIDE < n)
                C[(top + y + i * SIDE) * n + left + x + j * SIDE] = sum[i][j];
}

static unsigned blocks(int64_t m, int64_t n) { return (m + TILE - 1) / TILE * ((n + TILE - 1) / TILE); }

extern "C" void gemm_bf16(const narrow *A, const narrow *B, real *C, int64_t m, int64_t n, int64_t k,
                          hipStream_t stream)
{
    multiply_tiles<Product><<<blocks(m, n), THREADS, 0, stream>>>(A, B, C, m, n, k);
}

#ifdef KC_ORACLE
struct Magnitude {
    __device__ static real of(real x, real y) { return fabs(x * y); }
};

extern "C" void gemm_bf16_magnitude(const narrow *A, const narrow *B, real *C, int64_t m, int64_t n, int64_t k,
                                    hipStream_t stream)
{
    multiply_tiles<Magnitude><<<blocks(m, n), THREADS, 0, stream>>>(A, B, C, m, n, k);
}
#endif
