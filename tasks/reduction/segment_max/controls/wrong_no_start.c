// Wrong segment_max: starts from zero instead of start.
#include <stdint.h>

void segment_max(const int64_t *first, const float *x, float *out, int64_t segments, int64_t n, float start)
{
    (void)n;
    (void)start;
    for (int64_t s = 0; s < segments; s++) {
        float best = 0.0f;
        for (int64_t i = first[s]; i < first[s + 1]; i++)
            if (x[i] > best)
                best = x[i];
        out[s] = best;
    }
}
