/* Wrong logsumexp_rows: the maximum is not taken out, so large inputs overflow. */
#include <math.h>
#include <stdint.h>

void logsumexp_rows(const float *x, float *out, int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++) {
        float sum = 0.0f;
        for (int64_t c = 0; c < cols; c++)
            sum += expf(x[r * cols + c]);
        out[r] = logf(sum);
    }
}
