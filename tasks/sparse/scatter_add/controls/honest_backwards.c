/* Honest scatter_add: from the last value to the first. */
#include <stdint.h>

void scatter_add(const int32_t *index, const float *values, float *y, int64_t n, int64_t count)
{
    (void)n;
    while (count-- > 0)
        y[index[count]] = values[count] + y[index[count]];
}
