// Wrong rmsnorm: eps is added to the root instead of to the mean square.
#include <math.h>
#include <stdint.h>

void rmsnorm(const float *x, const float *weight, float *out, int64_t rows, int64_t cols, float eps)
{
    for (int64_t r = 0; r < rows; r++) {
        const float *row = x + r * cols;
        float sum = 0;
        for (int64_t c = 0; c < cols; c++)
            sum += row[c] * row[c];
        const float scale = 1.0f / (sqrtf(sum / (float)cols) + eps);
        for (int64_t c = 0; c < cols; c++)
            out[r * cols + c] = row[c] * scale * weight[c];
    }
}
