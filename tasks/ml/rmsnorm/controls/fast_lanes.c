// Fast rmsnorm: the sum of squares runs in 32 lanes, both passes over a row are vectors.
#include <math.h>
#include <stdint.h>

enum { LANES = 32 };

static float sum_of_squares(const float *restrict row, int64_t cols)
{
    float lane[LANES] = {0};
    float sum = 0;
    int64_t c = 0;
    for (; c + LANES <= cols; c += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] += row[c + l] * row[c + l];
    for (; c < cols; c++)
        sum += row[c] * row[c];
    for (int width = LANES / 2; width > 0; width /= 2)
        for (int l = 0; l < width; l++)
            lane[l] += lane[l + width];
    return sum + lane[0];
}

void rmsnorm(const float *restrict x, const float *restrict weight, float *restrict out, int64_t rows,
             int64_t cols, float eps)
{
    for (int64_t r = 0; r < rows; r++) {
        const float *restrict row = x + r * cols;
        float *restrict to = out + r * cols;
        const float scale = 1.0f / sqrtf(sum_of_squares(row, cols) / (float)cols + eps);
        for (int64_t c = 0; c < cols; c++)
            to[c] = row[c] * scale * weight[c];
    }
}
