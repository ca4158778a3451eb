/* Fast sgemm: A and B packed into zero-padded panels, a 6 x 16 block of C kept in registers. */
#include <stdint.h>
#include <string.h>

typedef float v8 __attribute__((vector_size(32)));

enum { MR = 6, NR = 16, MC = 96, KC = 256, NC = 512 };

static float panel_a[MC * KC] __attribute__((aligned(64)));
static float panel_b[KC * NC] __attribute__((aligned(64)));

static int64_t least(int64_t left, int64_t right)
{
    return left < right ? left : right;
}

static void pack_a(const float *A, int64_t lda, int64_t rows, int64_t depth)
{
    float *to = panel_a;
    for (int64_t i = 0; i < rows; i += MR)
        for (int64_t p = 0; p < depth; p++)
            for (int64_t r = 0; r < MR; r++)
                *to++ = i + r < rows ? A[(i + r) * lda + p] : 0.0f;
}

static void pack_b(const float *B, int64_t ldb, int64_t depth, int64_t cols)
{
    for (int64_t j = 0; j < cols; j += NR) {
        float *to = panel_b + j * depth;
        int64_t width = least(NR, cols - j);
        for (int64_t p = 0; p < depth; p++, to += NR) {
            if (width == NR) {
                memcpy(to, B + p * ldb + j, sizeof(float) * NR);
                continue;
            }
            for (int64_t c = 0; c < NR; c++)
                to[c] = c < width ? B[p * ldb + j + c] : 0.0f;
        }
    }
}

/* block = (MR x depth panel) * (depth x NR panel) */
static void multiply(const float *a, const float *b, int64_t depth, float *block)
{
    v8 sum[MR][2] = {};
    for (int64_t p = 0; p < depth; p++, a += MR, b += NR) {
        v8 left = *(const v8 *)b, right = *(const v8 *)(b + 8);
#pragma GCC unroll 6
        for (int r = 0; r < MR; r++) {
            sum[r][0] += a[r] * left;
            sum[r][1] += a[r] * right;
        }
    }
#pragma GCC unroll 6
    for (int r = 0; r < MR; r++) {
        *(v8 *)(block + r * NR) = sum[r][0];
        *(v8 *)(block + r * NR + 8) = sum[r][1];
    }
}

void sgemm(const float *A, const float *B, float *C, int64_t m, int64_t n, int64_t k)
{
    float block[MR * NR] __attribute__((aligned(64)));
    for (int64_t j0 = 0; j0 < n; j0 += NC)
        for (int64_t p0 = 0; p0 < k; p0 += KC) {
            int64_t cols = least(NC, n - j0), depth = least(KC, k - p0);
            pack_b(B + p0 * n + j0, n, depth, cols);
            for (int64_t i0 = 0; i0 < m; i0 += MC) {
                int64_t rows = least(MC, m - i0);
                pack_a(A + i0 * k + p0, k, rows, depth);
                for (int64_t j = 0; j < cols; j += NR)
                    for (int64_t i = 0; i < rows; i += MR) {
                        multiply(panel_a + i * depth, panel_b + j * depth, depth, block);
                        int64_t height = least(MR, rows - i), width = least(NR, cols - j);
                        for (int64_t r = 0; r < height; r++) {
                            float *to = C + (i0 + i + r) * n + j0 + j;
                            for (int64_t c = 0; c < width; c++)
                                to[c] = p0 ? to[c] + block[r * NR + c] : block[r * NR + c];
                        }
                    }
            }
        }
}
