// Wrong rmsnorm: the sum of squares leaves out the columns after the last full group of eight.
#include <math.h>
#include <stdint.h>

void rmsnorm(const float *x, const float *weight, float *out, int64_t rows, int64_t cols, float eps)
{
    for (int64_t r = 0; r < rows; r++) {
        const float *row = x + r * cols;
        float sum = 0;
        for (int64_t c = 0; c < (cols < 8 ? cols : cols / 8 * 8); c++)
            sum += row[c] * row[c];
        const float scale = 1.0f / sqrtf(sum / (float)cols + eps);
        for (int64_t c = 0; c < cols; c++)
            out[r * cols + c] = row[c] * scale * weight[c];
    }
}
