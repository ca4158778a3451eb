/* Wrong scatter_add: starts the sums from zero and forgets what was there. */
#include <stdint.h>

void scatter_add(const int32_t *index, const float *values, float *y, int64_t n, int64_t count)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = 0.0f;
    for (int64_t e = 0; e < count; e++)
        y[index[e]] += values[e];
}
