/* kernel: jacobi2d
   outcome: solved

   A buffer that grows and is kept, but filled anew in each call: what was in it is never an answer. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static float *kept;
static size_t room;

static float *scratch(size_t count) {
  if (count > room) {
    float *larger = realloc(kept, count * sizeof *kept);
    if (!larger) abort();
    kept = larger, room = count;
  }
  return kept;
}

void jacobi2d(const float *x, float *out, int64_t rows, int64_t cols) {
  size_t bytes = (size_t)(rows * cols) * sizeof *x;
  float *copy = scratch((size_t)(rows * cols));
  memcpy(copy, x, bytes);
  memmove(out, copy, bytes);
  for (int64_t r = 1; r < rows - 1; r++)
    for (int64_t c = 1; c < cols - 1; c++) {
      const float *at = copy + r * cols + c;
      out[r * cols + c] = 0.2f * (at[-cols] + at[-1] + at[0] + at[1] + at[cols]);
    }
}
