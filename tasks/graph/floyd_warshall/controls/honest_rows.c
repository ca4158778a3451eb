// Honest floyd_warshall: row pointers, the entry to k is read once a row.
#include <stdint.h>

void floyd_warshall(float *dist, int64_t n)
{
    for (const float *via = dist, *end = dist + n * n; via != end; via += n) {
        const int64_t k = (via - dist) / n;
        for (float *row = dist; row != end; row += n) {
            const float to_k = row[k];
            for (int64_t j = 0; j < n; j++)
                row[j] = to_k + via[j] < row[j] ? to_k + via[j] : row[j];
        }
    }
}
