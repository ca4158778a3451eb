/* Baseline of logsumexp_rows: a pass for the maximum, a pass for the sum, one row after the other. */
#include <stdint.h>
#include <tgmath.h>

#ifndef real
#define real float
#endif

void logsumexp_rows(const real *x, real *out, int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++) {
        const real *in = x + r * cols;
        real top = in[0];
        for (int64_t c = 1; c < cols; c++)
            if (in[c] > top)
                top = in[c];
        real sum = 0;
        for (int64_t c = 0; c < cols; c++)
            sum += exp(in[c] - top);
        out[r] = top + log(sum);
    }
}

#ifdef KC_ORACLE
void logsumexp_rows_magnitude(const real *x, real *out, int64_t rows, int64_t cols)
{
    logsumexp_rows(x, out, rows, cols);
    for (int64_t r = 0; r < rows; r++) {
        const real *in = x + r * cols;
        real top = in[0], sum = 0, spread = 0;
        for (int64_t c = 1; c < cols; c++)
            if (in[c] > top)
                top = in[c];
        for (int64_t c = 0; c < cols; c++) {
            sum += exp(in[c] - top);
            spread += exp(in[c] - top) * (top - in[c]);
        }
        out[r] = 1 + spread / sum + fabs(out[r]) / sqrt((real)cols);
    }
}
#endif
