// Honest histogram: even and odd positions are counted apart; above 512 bins a plain loop.
#include <stdint.h>
#include <string.h>

enum { TABLE = 512 };

void histogram(const int32_t *x, int32_t *counts, int64_t n, int64_t bins)
{
    int32_t odd[TABLE];
    memset(counts, 0, (size_t)bins * sizeof *counts);
    if (bins > TABLE) {
        for (const int32_t *end = x + n; x != end; x++)
            ++counts[*x];
        return;
    }
    memset(odd, 0, sizeof odd);
    for (int64_t i = 0; i + 1 < n; i += 2) {
        ++counts[x[i]];
        ++odd[x[i + 1]];
    }
    if (n % 2)
        ++counts[x[n - 1]];
    for (int64_t b = 0; b < bins; b++)
        counts[b] += odd[b];
}
