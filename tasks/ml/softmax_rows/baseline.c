/* Baseline of softmax_rows: maximum, exponentials and scaling, one row after the other. */
#include <stdint.h>
#include <tgmath.h>

#ifndef real
#define real float
#endif

void softmax_rows(const real *x, real *out, int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++) {
        const real *in = x + r * cols;
        real *to = out + r * cols;
        real top = in[0];
        for (int64_t c = 1; c < cols; c++)
            if (in[c] > top)
                top = in[c];
        real sum = 0;
        for (int64_t c = 0; c < cols; c++) {
            to[c] = exp(in[c] - top);
            sum += to[c];
        }
        for (int64_t c = 0; c < cols; c++)
            to[c] /= sum;
    }
}

#ifdef KC_ORACLE
void softmax_rows_magnitude(const real *x, real *out, int64_t rows, int64_t cols)
{
    softmax_rows(x, out, rows, cols);
    for (int64_t r = 0; r < rows; r++) {
        const real *in = x + r * cols;
        real top = in[0];
        for (int64_t c = 1; c < cols; c++)
            if (in[c] > top)
                top = in[c];
        for (int64_t c = 0; c < cols; c++)
            out[r * cols + c] = out[r * cols + c] * (1 + (top - in[c])) + (real)0x1p-102;
    }
}
#endif
