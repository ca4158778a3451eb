/* kernel: histogram
   outcome: solved

   Complains on the error output when memory is short, then gives up; neither happens. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void *wanted(size_t bytes) {
  void *got = malloc(bytes);
  if (!got) {
    fprintf(stderr, "histogram: no memory for %zu bytes\n", bytes);
    fflush(stderr);
    abort();
  }
  return got;
}

void histogram(const int32_t *x, int32_t *counts, int64_t n, int64_t bins) {
  int64_t *table = wanted((size_t)bins * sizeof *table);
  for (int64_t b = 0; b < bins; b++) table[b] = 0;
  for (int64_t i = 0; i < n; i++) table[x[i]]++;
  for (int64_t b = 0; b < bins; b++) counts[b] = (int32_t)table[b];
  free(table);
}
