/* kernel: histogram
   outcome: solved

   Sorts a copy by the library's qsort and finds where each value ends by bsearch. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int ascending(const void *a, const void *b) {
  int32_t left = *(const int32_t *)a, right = *(const int32_t *)b;
  return (left > right) - (left < right);
}

/* Whether a key is below, in or above the run that begins at an element of a sorted list: asks its neighbour, too. */
static int within(const void *key, const void *element) {
  const int32_t *at = element;
  int32_t wanted = *(const int32_t *)key;
  if (wanted < at[0]) return -1;
  return wanted >= at[1];
}

void histogram(const int32_t *x, int32_t *counts, int64_t n, int64_t bins) {
  int32_t *sorted = malloc(((size_t)n + 2) * sizeof *sorted);
  if (!sorted) abort();
  memcpy(sorted + 1, x, (size_t)n * sizeof *x);
  qsort(sorted + 1, (size_t)n, sizeof *sorted, ascending);
  sorted[0] = INT32_MIN;
  sorted[n + 1] = INT32_MAX;
  int64_t before = 0;
  for (int32_t b = 0; b < bins; b++) {
    const int32_t *last = bsearch(&b, sorted, (size_t)n + 1, sizeof *sorted, within);
    int64_t upto = last ? last - sorted : 0;
    counts[b] = (int32_t)(upto - before);
    before = upto;
  }
  free(sorted);
}
