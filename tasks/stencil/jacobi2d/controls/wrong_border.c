/* Wrong jacobi2d: the border is set to zero instead of being copied. */
#include <stdint.h>

void jacobi2d(const float *x, float *out, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows * cols; i++)
        out[i] = 0.0f;
    for (int64_t r = 1; r < rows - 1; r++)
        for (int64_t c = 1; c < cols - 1; c++) {
            int64_t i = r * cols + c;
            out[i] = 0.2f * (x[i] + x[i - cols] + x[i + cols] + x[i - 1] + x[i + 1]);
        }
}
