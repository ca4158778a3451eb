// Baseline of argmax_rows: a running maximum and its position.
#include <stdint.h>
#ifndef real
#define real float
#endif

void argmax_rows(const real *restrict x, int32_t *restrict out, int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++) {
        const real *row = x + r * cols;
        real best = row[0];
        int64_t where = 0;
        for (int64_t c = 1; c < cols; c++) {
            if (row[c] > best) {
                best = row[c];
                where = c;
            }
        }
        out[r] = (int32_t)where;
    }
}
