/* Baseline of prefix_sum: one pass with a running sum. */
#include <stdint.h>
#include <tgmath.h>

#ifndef real
#define real float
#endif

void prefix_sum(const real *x, real *out, int64_t n)
{
    real sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += x[i];
        out[i] = sum;
    }
}

#ifdef KC_ORACLE
void prefix_sum_magnitude(const real *x, real *out, int64_t n)
{
    real sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += fabs(x[i]);
        out[i] = sum;
    }
}
#endif
