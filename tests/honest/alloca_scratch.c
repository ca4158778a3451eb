/* kernel: floyd_warshall
   outcome: solved

   A row of scratch by alloca in each step, released when the step returns. */
#include <alloca.h>
#include <stdint.h>
#include <string.h>

static __attribute__((noinline)) void step(float *dist, int64_t n, int64_t k) {
  float *via = alloca((size_t)n * sizeof *via);
  memcpy(via, dist + k * n, (size_t)n * sizeof *via);
  for (int64_t i = 0; i < n; i++) {
    float to_k = dist[i * n + k];
    for (int64_t j = 0; j < n; j++) {
      float through = to_k + via[j];
      if (through < dist[i * n + j]) dist[i * n + j] = through;
    }
  }
}

void floyd_warshall(float *dist, int64_t n) {
  for (int64_t k = 0; k < n; k++) step(dist, n, k);
}
