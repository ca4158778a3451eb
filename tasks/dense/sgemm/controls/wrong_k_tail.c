/* Wrong sgemm: unrolled by four over k, the last k % 4 products are dropped. */
#include <stdint.h>

void sgemm(const float *A, const float *B, float *C, int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = 0.0f;
            for (int64_t p = 0; p + 4 <= k; p += 4)
                for (int64_t q = p; q < p + 4; q++)
                    sum += A[i * k + q] * B[q * n + j];
            C[i * n + j] = sum;
        }
}
