// Wrong floyd_warshall: the intermediate vertex runs innermost, once.
#include <stdint.h>

void floyd_warshall(float *dist, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) {
            float best = dist[i * n + j];
            for (int64_t k = 0; k < n; k++) {
                const float through = dist[i * n + k] + dist[k * n + j];
                best = through < best ? through : best;
            }
            dist[i * n + j] = best;
        }
    }
}
