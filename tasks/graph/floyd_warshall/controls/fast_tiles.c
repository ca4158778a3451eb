// Fast floyd_warshall: tiles of the matrix, kept in registers where that is sound.
#include <stdint.h>

enum { TILE = 32 };

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// Rows [i0, i1) and columns [j0, j1) by way of vertices [k0, k1); right where these overlap, too.
static void relax_in_order(float *dist, int64_t n, int64_t i0, int64_t i1, int64_t j0, int64_t j1,
                           int64_t k0, int64_t k1)
{
    for (int64_t k = k0; k < k1; k++) {
        const float *via = dist + k * n;
        for (int64_t i = i0; i < i1; i++) {
            float *row = dist + i * n;
            const float to_k = row[k];
            if (j1 - j0 == TILE) {
                for (int l = 0; l < TILE; l++) {
                    const float through = to_k + via[j0 + l];
                    row[j0 + l] = through < row[j0 + l] ? through : row[j0 + l];
                }
            } else {
                for (int64_t j = j0; j < j1; j++)
                    row[j] = to_k + via[j] < row[j] ? to_k + via[j] : row[j];
            }
        }
    }
}

// The same for a full tile of columns that overlaps neither the rows nor the columns of k.
static void relax_apart(float *restrict to, const float *restrict from, const float *restrict via, int64_t n,
                        int64_t vertices)
{
    float best[TILE];
    for (int l = 0; l < TILE; l++)
        best[l] = to[l];
    for (int64_t k = 0; k < vertices; k++) {
        const float to_k = from[k];
        for (int l = 0; l < TILE; l++) {
            const float through = to_k + via[k * n + l];
            best[l] = through < best[l] ? through : best[l];
        }
    }
    for (int l = 0; l < TILE; l++)
        to[l] = best[l];
}

void floyd_warshall(float *dist, int64_t n)
{
    for (int64_t k0 = 0; k0 < n; k0 += TILE) {
        const int64_t k1 = least(k0 + TILE, n);
        relax_in_order(dist, n, k0, k1, k0, k1, k0, k1);
        for (int64_t t = 0; t < n; t += TILE) {
            if (t == k0)
                continue;
            const int64_t end = least(t + TILE, n);
            relax_in_order(dist, n, k0, k1, t, end, k0, k1);
            relax_in_order(dist, n, t, end, k0, k1, k0, k1);
        }
        for (int64_t j0 = 0; j0 < n; j0 += TILE) {
            if (j0 == k0)
                continue;
            for (int64_t i0 = 0; i0 < n; i0 += TILE) {
                if (i0 == k0)
                    continue;
                const int64_t i1 = least(i0 + TILE, n);
                if (j0 + TILE > n) {
                    relax_in_order(dist, n, i0, i1, j0, n, k0, k1);
                    continue;
                }
                for (int64_t i = i0; i < i1; i++)
                    relax_apart(dist + i * n + j0, dist + i * n + k0, dist + k0 * n + j0, n, k1 - k0);
            }
        }
    }
}
