// Wrong argmax_rows: of equal maxima the last one is taken.
#include <stdint.h>

void argmax_rows(const float *x, int32_t *out, int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++) {
        const float *row = x + r * cols;
        int64_t where = 0;
        for (int64_t c = 1; c < cols; c++)
            if (row[c] >= row[where])
                where = c;
        out[r] = (int32_t)where;
    }
}
