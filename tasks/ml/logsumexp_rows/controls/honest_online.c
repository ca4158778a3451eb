/* Honest logsumexp_rows: maximum and sum in one pass (the sum is rescaled when the maximum grows). */
#include <math.h>
#include <stdint.h>

void logsumexp_rows(const float *x, float *out, int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++) {
        const float *in = x + r * cols;
        float top = in[0], sum = 1.0f;
        for (int64_t c = 1; c < cols; c++) {
            if (in[c] > top) {
                sum = sum * expf(top - in[c]) + 1.0f;
                top = in[c];
            } else {
                sum += expf(in[c] - top);
            }
        }
        out[r] = top + logf(sum);
    }
}
