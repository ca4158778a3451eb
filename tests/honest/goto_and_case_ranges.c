/* kernel: argmax_rows
   outcome: solved

   Loops by goto, a switch over ranges, a label of its own scope, an expression that is a block. */
#include <stdint.h>

#define LARGER(a, b) ({ __typeof__(a) left = (a), right = (b); left > right; })

static int64_t first_chunk(int64_t cols) {
  switch (cols) {
  case 1 ... 15: return cols;
  case 16 ... 63: return 16;
  default: return 64;
  }
}

static int32_t first_largest(const float *row, int64_t cols) {
  __label__ again;
  int64_t where = 0, c = 1, chunk = first_chunk(cols), end = chunk;
again:
  if (c >= end) {
    if (end >= cols) return (int32_t)where;
    end = end + chunk < cols ? end + chunk : cols;
  }
  if (LARGER(row[c], row[where])) where = c;
  c++;
  goto again;
}

void argmax_rows(const float *x, int32_t *out, int64_t rows, int64_t cols) {
  int64_t r = 0;
next:
  if (r == rows) return;
  out[r] = first_largest(x + r * cols, cols);
  r++;
  goto next;
}
