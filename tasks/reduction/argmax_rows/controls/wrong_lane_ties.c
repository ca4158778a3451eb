// Wrong argmax_rows: eight lanes are joined without asking which of equal maxima comes first.
#include <stdint.h>

void argmax_rows(const float *x, int32_t *out, int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++) {
        const float *row = x + r * cols;
        int64_t place[8] = {0};
        const int64_t lanes = cols < 8 ? cols : 8;
        for (int64_t l = 0; l < lanes; l++) {
            place[l] = l;
            for (int64_t c = l + 8; c < cols; c += 8)
                if (row[c] > row[place[l]])
                    place[l] = c;
        }
        int64_t where = place[0];
        for (int64_t l = 1; l < lanes; l++)
            if (row[place[l]] > row[where])
                where = place[l];
        out[r] = (int32_t)where;
    }
}
