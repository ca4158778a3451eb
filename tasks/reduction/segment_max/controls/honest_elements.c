// Honest segment_max: one loop over the elements, the segment advances when its end is reached.
#include <stdint.h>

void segment_max(const int64_t *first, const float *x, float *out, int64_t segments, int64_t n, float start)
{
    int64_t segment = 0;
    for (int64_t s = 0; s < segments; s++)
        out[s] = start;
    for (int64_t i = 0; i < n; i++) {
        while (i >= first[segment + 1])
            segment++;
        if (out[segment] < x[i])
            out[segment] = x[i];
    }
}
