/* Wrong jacobi2d: sweeps in place after a copy, so north and west are already updated. */
#include <stdint.h>
#include <string.h>

void jacobi2d(const float *x, float *out, int64_t rows, int64_t cols)
{
    memcpy(out, x, sizeof(float) * (size_t)(rows * cols));
    for (int64_t r = 1; r < rows - 1; r++)
        for (int64_t c = 1; c < cols - 1; c++) {
            int64_t i = r * cols + c;
            out[i] = 0.2f * (out[i] + out[i - cols] + out[i + cols] + out[i - 1] + out[i + 1]);
        }
}
