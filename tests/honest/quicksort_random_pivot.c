/* kernel: argmax_rows
   outcome: solved

   Quickselect with pivots from rand(), seeded alike at each call: the answer does not depend on them. */
#include <stdint.h>
#include <stdlib.h>

typedef struct {
  const float *row;
} view_t;

static int comes_first(view_t view, int32_t a, int32_t b) {
  return view.row[a] > view.row[b] || (view.row[a] == view.row[b] && a < b);
}

static void swap(int32_t *a, int32_t *b) {
  int32_t kept = *a;
  *a = *b, *b = kept;
}

static int32_t first_of(view_t view, int32_t *places, int64_t count) {
  if (count == 1) return places[0];
  swap(places, places + rand() % count);
  int64_t before = 1;
  for (int64_t i = 1; i < count; i++)
    if (comes_first(view, places[i], places[0])) swap(places + before++, places + i);
  return before == 1 ? places[0] : first_of(view, places + 1, before - 1);
}

void argmax_rows(const float *x, int32_t *out, int64_t rows, int64_t cols) {
  int32_t *places = calloc((size_t)cols, sizeof *places);
  if (!places) abort();
  srand(4711);
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t c = 0; c < cols; c++) places[c] = (int32_t)c;
    out[r] = first_of((view_t){x + r * cols}, places, cols);
  }
  free(places);
}
