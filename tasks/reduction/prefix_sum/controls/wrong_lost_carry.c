/* Wrong prefix_sum: the running sum starts again at every block of 4096. */
#include <stdint.h>

void prefix_sum(const float *x, float *out, int64_t n)
{
    float sum = 0.0f;
    for (int64_t i = 0; i < n; i++) {
        if (i % 4096 == 0)
            sum = 0.0f;
        sum += x[i];
        out[i] = sum;
    }
}
