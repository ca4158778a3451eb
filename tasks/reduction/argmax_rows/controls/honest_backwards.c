// Honest argmax_rows: from the last column to the first, so that the first of equal values is kept with >=.
#include <stdint.h>

void argmax_rows(const float *x, int32_t *out, int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++, x += cols) {
        int64_t best = cols - 1;
        for (int64_t c = cols - 1; c-- > 0;)
            best = x[c] >= x[best] ? c : best;
        out[r] = (int32_t)best;
    }
}
