/* kernel: floyd_warshall
   outcome: solved

   64 MiB of zeros in static memory, of which it uses what it needs and larger matrices do without. */
#include <stdint.h>
#include <string.h>

enum { SIDE = 4096 };
static float padded[SIDE][SIDE];

static void steps(float *dist, int64_t n, int64_t pitch) {
  for (int64_t k = 0; k < n; k++)
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < n; j++) {
        float through = dist[i * pitch + k] + dist[k * pitch + j];
        if (through < dist[i * pitch + j]) dist[i * pitch + j] = through;
      }
}

void floyd_warshall(float *dist, int64_t n) {
  if (n > SIDE) {
    steps(dist, n, n);
    return;
  }
  for (int64_t i = 0; i < n; i++) memcpy(padded[i], dist + i * n, (size_t)n * sizeof *dist);
  steps(padded[0], n, SIDE);
  for (int64_t i = 0; i < n; i++) memcpy(dist + i * n, padded[i], (size_t)n * sizeof *dist);
}
