// Fast segment_max: thirty-two running maxima a segment, which the compiler keeps in vectors.
#include <stdint.h>

enum { LANES = 32 };

static inline float larger(float a, float b) { return a > b ? a : b; }

static float largest(const float *x, int64_t count, float start)
{
    float best[LANES];
    for (int lane = 0; lane < LANES; lane++)
        best[lane] = start;
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int lane = 0; lane < LANES; lane++)
            best[lane] = larger(x[i + lane], best[lane]);
    for (int width = LANES / 2; width > 0; width /= 2)
        for (int lane = 0; lane < width; lane++)
            best[lane] = larger(best[lane], best[lane + width]);
    for (; i < count; i++)
        best[0] = larger(x[i], best[0]);
    return best[0];
}

void segment_max(const int64_t *restrict first, const float *restrict x, float *restrict out, int64_t segments, int64_t n,
                 float start)
{
    (void)n;
    for (int64_t s = 0; s < segments; s++)
        out[s] = largest(x + first[s], first[s + 1] - first[s], start);
}
