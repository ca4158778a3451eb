// Fast gauss_seidel2d: eight rows at a time, each one column behind the row above it, so that chains overlap.
#include <stdint.h>

enum { ROWS = 8 };

static inline float updated(const float *f, const float *u, int64_t at, int64_t i, int64_t j, int64_t rows, int64_t cols)
{
    const float north = i > 0 ? u[at - cols] : 0.0f;
    const float west = j > 0 ? u[at - 1] : 0.0f;
    const float east = j < cols - 1 ? u[at + 1] : 0.0f;
    const float south = i < rows - 1 ? u[at + cols] : 0.0f;
    return 0.25f * west + 0.25f * ((north + east) + (south + f[at]));
}

static void point(const float *f, float *u, int64_t i, int64_t j, int64_t rows, int64_t cols)
{
    u[i * cols + j] = updated(f, u, i * cols + j, i, j, rows, cols);
}

// Rows first to first + ROWS - 1, neither of them at the grid's border; row k is at column step - k.
static void band(const float *restrict f, float *restrict u, int64_t first, int64_t rows, int64_t cols)
{
    for (int64_t step = 0; step < ROWS; step++)
        for (int64_t k = 0; k <= step; k++)
            point(f, u, first + k, step - k, rows, cols);
    float west[ROWS];
    for (int64_t k = 0; k < ROWS; k++)
        west[k] = u[(first + k) * cols + ROWS - 1 - k];
    for (int64_t step = ROWS; step < cols - 1; step++) {
        for (int64_t k = 0; k < ROWS; k++) {
            const int64_t at = (first + k) * cols + step - k;
            const float known = (u[at - cols] + u[at + 1]) + (u[at + cols] + f[at]);
            u[at] = west[k] = 0.25f * west[k] + 0.25f * known;
        }
    }
    for (int64_t step = cols - 1; step < cols + ROWS - 1; step++)
        for (int64_t k = step - cols + 1; k < ROWS; k++)
            point(f, u, first + k, step - k, rows, cols);
}

void gauss_seidel2d(const float *f, float *u, int64_t rows, int64_t cols)
{
    int64_t i = 0;
    while (i < rows) {
        if (i > 0 && i + ROWS < rows && cols > ROWS) {
            band(f, u, i, rows, cols);
            i += ROWS;
        } else {
            for (int64_t j = 0; j < cols; j++)
                point(f, u, i, j, rows, cols);
            i++;
        }
    }
}
