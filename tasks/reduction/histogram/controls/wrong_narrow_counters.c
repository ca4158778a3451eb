// Wrong histogram: counts wrap at 2^8, as with byte counters that are never flushed.
#include <stdint.h>

void histogram(const int32_t *x, int32_t *counts, int64_t n, int64_t bins)
{
    for (int64_t b = 0; b < bins; b++)
        counts[b] = 0;
    for (int64_t i = 0; i < n; i++)
        counts[x[i]] = (counts[x[i]] + 1) & 0xff;
}
