/* Baseline of sgemm: one dot product an element. */
#include <stdint.h>
#include <tgmath.h>

#ifndef real
#define real float
#endif

void sgemm(const real *A, const real *B, real *C, int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            real sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum += A[i * k + p] * B[p * n + j];
            C[i * n + j] = sum;
        }
}

#ifdef KC_ORACLE
void sgemm_magnitude(const real *A, const real *B, real *C, int64_t m, int64_t n,
                     int64_t k)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            real sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum += fabs(A[i * k + p] * B[p * n + j]);
            C[i * n + j] = sum;
        }
}
#endif
