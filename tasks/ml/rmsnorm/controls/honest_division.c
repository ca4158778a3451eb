// Honest rmsnorm: sums in double, every element divided by the root.
#include <math.h>
#include <stdint.h>

void rmsnorm(const float *x, const float *weight, float *out, int64_t rows, int64_t cols, float eps)
{
    for (int64_t r = 0; r < rows; r++, x += cols, out += cols) {
        double sum = 0;
        for (int64_t c = 0; c < cols; c++)
            sum += (double)x[c] * x[c];
        const float root = sqrtf((float)(sum / (double)cols) + eps);
        for (int64_t c = 0; c < cols; c++)
            out[c] = x[c] / root * weight[c];
    }
}
