// Baseline of attention_fwd: a block computes 64 queries of a head, going through its keys in tiles. Sums are kept
// relative to the highest score so far, and scaled when it rises.
#include <hip/hip_bf16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

#ifndef real
#define real float
#endif

#ifdef KC_ORACLE
typedef real narrow;
__device__ real widened(narrow x) { return x; }
__device__ narrow narrow_zero() { return 0; }
constexpr int EACH = 1; // what is four times as wide takes as much shared memory
#else
typedef __hip_bfloat16 narrow;
__device__ real widened(narrow x) { return __bfloat162float(x); }
__device__ narrow narrow_zero() { return __float2bfloat16(0.0f); }
constexpr int EACH = 4;
#endif

// A thread has EACH queries, one key of a tile, and every SIDEth dimension.
constexpr int SIDE = 16, QUERIES = SIDE * EACH, THREADS = SIDE * SIDE;
constexpr int DIM = 128, PARTS = DIM / SIDE, STRIDE = DIM + 2;

// Rows from `first` on, `count` of them, of a head; zero outside of it.
__device__ void load_rows(narrow (*to)[STRIDE], const narrow *of_head, int64_t first, int count, int64_t seq, int dim)
{
    for (int e = threadIdx.x; e < count * DIM; e += THREADS) {
        const int row = e / DIM, d = e % DIM;
        to[row][d] = first + row < seq && d < dim ? of_head[(first + row) * dim + d] : narrow_zero();
    }
}

// Sums over the keys so far of a thread's queries, divided by exp(top): of weights, and of weights times v.
struct Sums {
    real top[EACH], weights[EACH], terms[EACH][PARTS];
};

__device__ void clear(Sums &sums)
{
    for (int i = 0; i < EACH; i++) {
        sums.top[i] = -INFINITY;
        sums.weights[i] = 0;
        for (int part = 0; part < PARTS; part++)
            sums.terms[i][part] = 0;
    }
}

// Scores of a thread's queries, `y` of every SIDE, for its key.
__device__ void score_key(real *score, const narrow (*query)[STRIDE], const narrow *key, int y, int dim, real scale)
{
    for (int i = 0; i < EACH; i++)
        score[i] = 0;
#pragma unroll 2
    for (int d = 0; d < dim; d++) {
        const real of_key = widened(key[d]);
        for (int i = 0; i < EACH; i++)
            score[i] += widened(query[y + i * SIDE][d]) * of_key;
    }
    for (int i = 0; i < EACH; i++)
        score[i] *= scale;
}

// Take in the scores of a tile: as the highest one rises, the sums shrink.
__device__ void raise_tops(Sums &sums, const real (*scores)[SIDE + 1], int y)
{
    for (int i = 0; i < EACH; i++) {
        real higher = sums.top[i];
        for (int key = 0; key < SIDE; key++)
            higher = fmax(higher, scores[y + i * SIDE][key]);
        const real factor = exp(sums.top[i] - higher);
        sums.top[i] = higher;
        sums.weights[i] *= factor;
        for (int part = 0; part < PARTS; part++)
            sums.terms[i][part] *= factor;
    }
}

struct Value {
    __device__ static real of(real v) { return v; }
};

// Add the weights of a tile's keys, and the terms of the dimensions x, x + SIDE, ...
template <class Term>
__device__ void add_keys(Sums &sums, const real (*weights)[SIDE + 1], const narrow (*v)[STRIDE], int y, int x)
{
#pragma unroll 1
    for (int key = 0; key < SIDE; key++) {
        real weight[EACH];
        for (int i = 0; i < EACH; i++) {
            weight[i] = weights[y + i * SIDE][key];
            sums.weights[i] += weight[i];
        }
        for (int part = 0; part < PARTS; part++) {
            const real term = Term::of(widened(v[key][x + part * SIDE]));
            for (int i = 0; i < EACH; i++)
                sums.terms[i][part] += weight[i] * term;
        }
    }
}

template <class Term>
__global__ __launch_bounds__(THREADS) void attend(const narrow *q, const narrow *k, const narrow *v, real *out,
                                                  int64_t seq, int dim, real scale, real smallest)
{
    __shared__ narrow query[QUERIES][STRIDE], tile[SIDE][STRIDE]; // of k, then of v
    __shared__ real shared[QUERIES][SIDE + 1];                    // scores, then weights
    const int64_t groups = (seq + QUERIES - 1) / QUERIES, begin = blockIdx.x / groups * seq * dim;
    const int64_t first_query = blockIdx.x % groups * QUERIES;
    const int y = threadIdx.x / SIDE, x = threadIdx.x % SIDE;
    Sums sums;
    clear(sums);
    load_rows(query, q + begin, first_query, QUERIES, seq, dim);
    for (int64_t first = 0; first < seq; first += SIDE) {
        load_rows(tile, k + begin, first, SIDE, seq, dim);
        __syncthreads();
        real score[EACH];
        score_key(score, query, tile[x], y, dim, scale);
        for (int i = 0; i < EACH; i++)
            shared[y + i * SIDE][x] = score[i] = first + x < seq ? score[i] : -INFINITY;
        __syncthreads();
        raise_tops(sums, shared, y);
        load_rows(tile, v + begin, first, SIDE, seq, dim);
        __syncthreads();
        for (int i = 0; i < EACH; i++)
            shared[y + i * SIDE][x] = exp(score[i] - sums.top[i]);
        __syncthreads();
        add_keys<Term>(sums, shared, tile, y, x);
        __syncthreads();
    }
    for (int i = 0; i < EACH; i++)
        for (int part = 0; part < PARTS; part++) {
            const int64_t row = first_query + y + i * SIDE, d = x + part * SIDE;
            if (row < seq && d < dim)
                out[begin + row * dim + d] = sums.terms[i][part] / sums.weights[i] + smallest;
        }
}

static unsigned blocks(int64_t heads, int64_t seq) { return heads * ((seq + QUERIES - 1) / QUERIES); }

extern "C" void attention_fwd(const narrow *q, const narrow *k, const narrow *v, real *out, int64_t heads, int64_t seq,
                              int64_t dim, hipStream_t stream)
{
    const real scale = 1 / sqrt((real)dim);
    attend<Value><<<blocks(heads, seq), THREADS, 0, stream>>>(q, k, v, out, seq, dim, scale, 0);
}

#ifdef KC_ORACLE
struct Size {
    __device__ static real of(real v) { return fabs(v); }
};

extern "C" void attention_fwd_magnitude(const narrow *q, const narrow *k, const narrow *v, real *out, int64_t heads,
                                        int64_t seq, int64_t dim, hipStream_t stream)
{
    const real scale = 1 / sqrt((real)dim), smallest = 0x1p-94;
    attend<Size><<<blocks(heads, seq), THREADS, 0, stream>>>(q, k, v, out, seq, dim, scale, smallest);
}
#endif
