// Fast argmax_rows: the maximum of a row in 32 lanes, then the first block that holds it.
#include <stdint.h>

enum { LANES = 32 };

static float row_maximum(const float *restrict row, int64_t cols)
{
    float best[LANES];
    float largest = row[0];
    int64_t c = 0;
    if (cols >= LANES) {
        for (int l = 0; l < LANES; l++)
            best[l] = row[l];
        for (c = LANES; c + LANES <= cols; c += LANES)
            for (int l = 0; l < LANES; l++)
                best[l] = row[c + l] > best[l] ? row[c + l] : best[l];
        for (int l = 0; l < LANES; l++)
            largest = best[l] > largest ? best[l] : largest;
    }
    for (; c < cols; c++)
        largest = row[c] > largest ? row[c] : largest;
    return largest;
}

static int64_t first_place(const float *restrict row, int64_t cols, float value)
{
    int64_t c = 0;
    for (; c + LANES <= cols; c += LANES) {
        int32_t hits = 0;
        for (int l = 0; l < LANES; l++)
            hits |= -(row[c + l] == value);
        if (hits)
            break;
    }
    while (c < cols - 1 && row[c] != value)
        c++;
    return c;
}

void argmax_rows(const float *restrict x, int32_t *restrict out, int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++) {
        const float *row = x + r * cols;
        out[r] = (int32_t)first_place(row, cols, row_maximum(row, cols));
    }
}
