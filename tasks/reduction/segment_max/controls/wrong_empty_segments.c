// Wrong segment_max: starts from the first element, so an empty segment takes its neighbour's.
#include <stdint.h>

void segment_max(const int64_t *first, const float *x, float *out, int64_t segments, int64_t n, float start)
{
    for (int64_t s = 0; s < segments; s++) {
        float best = first[s] < n && x[first[s]] > start ? x[first[s]] : start;
        for (int64_t i = first[s] + 1; i < first[s + 1]; i++)
            if (x[i] > best)
                best = x[i];
        out[s] = best;
    }
}
