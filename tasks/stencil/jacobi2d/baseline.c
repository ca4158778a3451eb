/* Baseline of jacobi2d: row by row, the border copied. */
#include <stdint.h>
#include <tgmath.h>

#ifndef real
#define real float
#endif

void jacobi2d(const real *x, real *out, int64_t rows, int64_t cols)
{
    for (int64_t c = 0; c < cols; c++) {
        out[c] = x[c];
        out[(rows - 1) * cols + c] = x[(rows - 1) * cols + c];
    }
    for (int64_t r = 1; r < rows - 1; r++) {
        const real *row = x + r * cols;
        real *to = out + r * cols;
        to[0] = row[0];
        to[cols - 1] = row[cols - 1];
        for (int64_t c = 1; c < cols - 1; c++)
            to[c] = (real)0.2 * (row[c] + row[c - cols] + row[c + cols] + row[c - 1] + row[c + 1]);
    }
}

#ifdef KC_ORACLE
void jacobi2d_magnitude(const real *x, real *out, int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++) {
            const real *at = x + r * cols + c;
            real sum = fabs(*at);
            if (r > 0 && r < rows - 1 && c > 0 && c < cols - 1)
                sum = (real)0.2 * (sum + fabs(at[-cols]) + fabs(at[cols]) + fabs(at[-1]) + fabs(at[1]));
            out[r * cols + c] = sum;
        }
}
#endif
