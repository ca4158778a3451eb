// Baseline of gelu: erf of the library, element by element.
#include <stdint.h>
#include <tgmath.h>
#ifndef real
#define real float
#endif

static const real inverse_root_2 = (real)0.70710678118654752440;

void gelu(const real *restrict x, real *restrict out, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = (real)0.5 * x[i] * ((real)1 + erf(x[i] * inverse_root_2));
}

#ifdef KC_ORACLE
void gelu_magnitude(const real *restrict x, real *restrict out, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = (real)0.5 * fabs(x[i]) * ((real)1 + fabs(erf(x[i] * inverse_root_2)));
}
#endif
