/* Baseline of axpy: one plain loop. */
#include <stdint.h>
#include <tgmath.h>

#ifndef real
#define real float
#endif

void axpy(const real *x, const real *y, real *out, int64_t n, real a)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = a * x[i] + y[i];
}

#ifdef KC_ORACLE
void axpy_magnitude(const real *x, const real *y, real *out, int64_t n, real a)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = fabs(a * x[i]) + fabs(y[i]);
}
#endif
