// Wrong histogram: the last value is dropped when n % 16 == 7.
#include <stdint.h>

void histogram(const int32_t *x, int32_t *counts, int64_t n, int64_t bins)
{
    for (int64_t b = 0; b < bins; b++)
        counts[b] = 0;
    const int64_t stop = n % 16 == 7 ? n - 1 : n;
    for (int64_t i = 0; i < stop; i++)
        counts[x[i]]++;
}
