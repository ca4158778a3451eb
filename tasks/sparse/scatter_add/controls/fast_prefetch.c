// Fast scatter_add: the places of later values are fetched ahead, so that their misses overlap.
#include <stdint.h>

enum { AHEAD = 48 };

void scatter_add(const int32_t *restrict index, const float *restrict values, float *restrict y, int64_t n, int64_t count)
{
    int64_t e = 0;
    (void)n;
    for (; e + AHEAD < count; e++) {
        __builtin_prefetch(y + index[e + AHEAD], 1);
        y[index[e]] += values[e];
    }
    for (; e < count; e++)
        y[index[e]] += values[e];
}
