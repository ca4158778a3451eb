/* Wrong softmax_rows: the maximum is not subtracted, so large inputs overflow. */
#include <math.h>
#include <stdint.h>

void softmax_rows(const float *x, float *out, int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++) {
        const float *in = x + r * cols;
        float *to = out + r * cols;
        float sum = 0.0f;
        for (int64_t c = 0; c < cols; c++) {
            to[c] = expf(in[c]);
            sum += to[c];
        }
        for (int64_t c = 0; c < cols; c++)
            to[c] /= sum;
    }
}
