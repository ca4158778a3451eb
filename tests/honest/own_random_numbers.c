/* kernel: prefix_sum
   outcome: solved

   Blocks summed in a random order (rand_r, and a generator of its own), then moved up in the right one. */
#include <stdint.h>
#include <stdlib.h>

enum { BLOCK = 256 };

static uint64_t state;
static uint64_t next(void) {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return state;
}

void prefix_sum(const float *x, float *out, int64_t n) {
  int64_t blocks = (n + BLOCK - 1) / BLOCK;
  int64_t *order = malloc((size_t)blocks * sizeof *order);
  double *sums = malloc((size_t)n * sizeof *sums), above = 0;
  if (!order || !sums) abort();
  unsigned seed = 99;
  state = 88172645463325252u;
  for (int64_t b = 0; b < blocks; b++) order[b] = b;
  for (int64_t b = blocks - 1; b > 0; b--) {
    int64_t other = (int64_t)((next() + (uint64_t)rand_r(&seed)) % (uint64_t)(b + 1)), kept = order[b];
    order[b] = order[other], order[other] = kept;
  }
  for (int64_t b = 0; b < blocks; b++) {
    double sum = 0;
    for (int64_t i = order[b] * BLOCK; i < n && i < (order[b] + 1) * BLOCK; i++) sums[i] = sum += x[i];
  }
  for (int64_t i = 0; i < n; i++) {
    if (i && i % BLOCK == 0) above += sums[i - 1];
    out[i] = (float)(above + sums[i]);
  }
  free(sums), free(order);
}
