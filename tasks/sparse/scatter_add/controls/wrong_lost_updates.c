/* Wrong scatter_add: eight at a time, read together and written together, so that repeats within them get lost. */
#include <stdint.h>

void scatter_add(const int32_t *index, const float *values, float *y, int64_t n, int64_t count)
{
    int64_t e = 0;
    (void)n;
    for (; e + 8 <= count; e += 8) {
        float sum[8];
        for (int lane = 0; lane < 8; lane++)
            sum[lane] = y[index[e + lane]] + values[e + lane];
        for (int lane = 0; lane < 8; lane++)
            y[index[e + lane]] = sum[lane];
    }
    for (; e < count; e++)
        y[index[e]] += values[e];
}
