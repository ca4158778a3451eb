// Baseline of rmsnorm: a sum of squares, then one scaling pass over each row.
#include <stdint.h>
#include <tgmath.h>
#ifndef real
#define real float
#endif

void rmsnorm(const real *restrict x, const real *restrict weight, real *restrict out, int64_t rows,
             int64_t cols, real eps)
{
    for (int64_t r = 0; r < rows; r++) {
        const real *row = x + r * cols;
        real sum = 0;
        for (int64_t c = 0; c < cols; c++)
            sum += row[c] * row[c];
        const real scale = (real)1 / sqrt(sum / (real)cols + eps);
        for (int64_t c = 0; c < cols; c++)
            out[r * cols + c] = row[c] * scale * weight[c];
    }
}
