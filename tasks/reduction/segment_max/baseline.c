// Baseline of segment_max: a running maximum for each segment.
#include <stdint.h>
#ifndef real
#define real float
#endif

void segment_max(const int64_t *first, const real *x, real *out, int64_t segments, int64_t n, real start)
{
    (void)n;
    for (int64_t s = 0; s < segments; s++) {
        real best = start;
        for (int64_t i = first[s]; i < first[s + 1]; i++)
            if (x[i] > best)
                best = x[i];
        out[s] = best;
    }
}
