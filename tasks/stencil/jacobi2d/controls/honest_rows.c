// Honest jacobi2d: one function a row, the border rows copied as blocks.
#include <stdint.h>
#include <string.h>

static void interior(const float *above, const float *row, const float *below, float *to, int64_t cols)
{
    to[0] = row[0];
    for (int64_t c = 1; c + 1 < cols; c++)
        to[c] = 0.2f * (row[c] + above[c] + below[c] + row[c - 1] + row[c + 1]);
    to[cols - 1] = row[cols - 1];
}

void jacobi2d(const float *x, float *out, int64_t rows, int64_t cols)
{
    const size_t bytes = (size_t)cols * sizeof *out;
    memcpy(out, x, bytes);
    for (int64_t r = 1; r + 1 < rows; r++)
        interior(x + (r - 1) * cols, x + r * cols, x + (r + 1) * cols, out + r * cols, cols);
    memcpy(out + (rows - 1) * cols, x + (rows - 1) * cols, bytes);
}
