/* Honest sgemm: loops in the order i, p, j, so that rows of B are added to a row of C. */
#include <stdint.h>
#include <string.h>

void sgemm(const float *restrict A, const float *restrict B, float *restrict C, int64_t m, int64_t n, int64_t k)
{
    memset(C, 0, sizeof(float) * (size_t)(m * n));
    for (int64_t i = 0; i < m; i++)
        for (int64_t p = 0; p < k; p++) {
            float factor = A[i * k + p];
            for (int64_t j = 0; j < n; j++)
                C[i * n + j] += factor * B[p * n + j];
        }
}
