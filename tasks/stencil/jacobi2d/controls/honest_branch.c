/* Honest jacobi2d: one loop over all points, a branch for the border, terms scaled before they are added. */
#include <stdint.h>

void jacobi2d(const float *x, float *out, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows * cols; i++) {
        int64_t r = i / cols, c = i % cols;
        if (r == 0 || c == 0 || r == rows - 1 || c == cols - 1)
            out[i] = x[i];
        else
            out[i] = 0.2f * x[i - cols] + 0.2f * x[i - 1] + 0.2f * x[i] + 0.2f * x[i + 1] + 0.2f * x[i + cols];
    }
}
