/* kernel: scatter_add
   outcome: solved

   Additions sorted by place first: a recursive merge sort of (place, number), so that each sum is made in one go. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  int32_t place, number;
} entry_t;

static void merge_sort(entry_t *entries, entry_t *spare, int64_t count) {
  if (count < 2) return;
  int64_t half = count / 2;
  merge_sort(entries, spare, half);
  merge_sort(entries + half, spare + half, count - half);
  memcpy(spare, entries, (size_t)count * sizeof *entries);
  for (int64_t left = 0, right = half, to = 0; to < count; to++) {
    int from_left = right == count || (left < half && spare[left].place <= spare[right].place);
    entries[to] = from_left ? spare[left++] : spare[right++];
  }
}

void scatter_add(const int32_t *index, const float *values, float *y, int64_t n, int64_t count) {
  (void)n;
  entry_t *entries = malloc(2 * (size_t)count * sizeof *entries);
  if (!entries) abort();
  for (int64_t e = 0; e < count; e++) entries[e] = (entry_t){index[e], (int32_t)e};
  merge_sort(entries, entries + count, count);
  for (int64_t e = 0; e < count;) {
    int32_t place = entries[e].place;
    double sum = y[place];
    for (; e < count && entries[e].place == place; e++) sum += values[entries[e].number];
    y[place] = (float)sum;
  }
  free(entries);
}
