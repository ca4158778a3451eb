/* Wrong softmax_rows: columns beyond the last multiple of eight are missing from the sum. */
#include <math.h>
#include <stdint.h>

void softmax_rows(const float *x, float *out, int64_t rows, int64_t cols)
{
    int64_t whole = cols < 8 ? cols : cols / 8 * 8;
    for (int64_t r = 0; r < rows; r++) {
        const float *in = x + r * cols;
        float *to = out + r * cols;
        float top = in[0], sum = 0.0f;
        for (int64_t c = 1; c < cols; c++)
            top = fmaxf(top, in[c]);
        for (int64_t c = 0; c < cols; c++) {
            to[c] = expf(in[c] - top);
            if (c < whole)
                sum += to[c];
        }
        for (int64_t c = 0; c < cols; c++)
            to[c] /= sum;
    }
}
