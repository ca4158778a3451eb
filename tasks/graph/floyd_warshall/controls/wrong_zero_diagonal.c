// Wrong floyd_warshall: the diagonal is taken to be zero.
#include <stdint.h>

void floyd_warshall(float *dist, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        dist[i * n + i] = 0.0f;
    for (int64_t k = 0; k < n; k++) {
        for (int64_t i = 0; i < n; i++) {
            const float to_k = dist[i * n + k];
            for (int64_t j = 0; j < n; j++)
                if (to_k + dist[k * n + j] < dist[i * n + j])
                    dist[i * n + j] = to_k + dist[k * n + j];
        }
    }
}
