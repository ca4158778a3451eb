/* kernel: jacobi2d
   outcome: solved

   Nine functions in a table, one a part of the grid: corners, edges, inside. */
#include <stdint.h>

typedef float (*point_t)(const float *at, int64_t cols);

static float same(const float *at, int64_t cols) { return (void)cols, *at; }
static float average(const float *at, int64_t cols) {
  return (at[0] + at[-cols] + at[cols] + at[-1] + at[1]) * 0.2f;
}

static const point_t parts[3][3] = {{same, same, same}, {same, average, same}, {same, same, same}};

static int part_of(int64_t i, int64_t count) { return i == 0 ? 0 : i == count - 1 ? 2 : 1; }

void jacobi2d(const float *x, float *out, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < cols; c++)
      out[r * cols + c] = parts[part_of(r, rows)][part_of(c, cols)](x + r * cols + c, cols);
}
