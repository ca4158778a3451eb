/* Baseline of scatter_add: one addition after the other. */
#include <stdint.h>
#include <tgmath.h>

#ifndef real
#define real float
#endif

void scatter_add(const int32_t *index, const real *values, real *y, int64_t n, int64_t count)
{
    (void)n;
    for (int64_t e = 0; e < count; e++)
        y[index[e]] += values[e];
}

#ifdef KC_ORACLE
#include <stdlib.h>

void scatter_add_magnitude(const int32_t *index, const real *values, real *y, int64_t n, int64_t count)
{
    int64_t *terms = malloc(n * sizeof *terms);
    for (int64_t i = 0; i < n; i++) {
        terms[i] = 1;
        y[i] = fabs(y[i]);
    }
    for (int64_t e = 0; e < count; e++) {
        terms[index[e]]++;
        y[index[e]] += fabs(values[e]);
    }
    for (int64_t i = 0; i < n; i++)
        y[i] *= sqrt((real)terms[i]);
    free(terms);
}
#endif
