/* Wrong prefix_sum: an exclusive scan. */
#include <stdint.h>

void prefix_sum(const float *x, float *out, int64_t n)
{
    float sum = 0.0f;
    for (int64_t i = 0; i < n; i++) {
        out[i] = sum;
        sum += x[i];
    }
}
