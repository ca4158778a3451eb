/* Honest prefix_sum: scans blocks of 256 on their own, then adds the sum of all earlier blocks. */
#include <stdint.h>

void prefix_sum(const float *restrict x, float *restrict out, int64_t n)
{
    float before = 0.0f;
    for (int64_t first = 0; first < n; first += 256) {
        int64_t end = first + 256 < n ? first + 256 : n;
        float sum = 0.0f;
        for (int64_t i = first; i < end; i++)
            out[i] = sum += x[i];
        for (int64_t i = first; i < end; i++)
            out[i] += before;
        before = out[end - 1];
    }
}
