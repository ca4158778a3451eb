// Baseline of floyd_warshall: three loops, the intermediate vertex outermost.
#include <stdint.h>
#ifndef real
#define real float
#endif

void floyd_warshall(real *dist, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        for (int64_t i = 0; i < n; i++) {
            const real to_k = dist[i * n + k];
            for (int64_t j = 0; j < n; j++) {
                const real through = to_k + dist[k * n + j];
                if (through < dist[i * n + j])
                    dist[i * n + j] = through;
            }
        }
    }
}
