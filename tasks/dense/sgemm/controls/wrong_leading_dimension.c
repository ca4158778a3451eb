/* Wrong sgemm: B is addressed with k as its row length, which is right for square matrices only. */
#include <stdint.h>

void sgemm(const float *A, const float *B, float *C, int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = 0.0f;
            for (int64_t p = 0; p < k; p++)
                sum += A[i * k + p] * B[(p * k + j) % (k * n)];
            C[i * n + j] = sum;
        }
}
