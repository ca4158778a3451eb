/* kernel: jacobi2d
   outcome: solved

   Promises in the parameters: restrict, const within brackets, at least so many elements. */
#include <stdint.h>

static void row(int64_t cols, const float north[static const restrict 1], const float here[static restrict 1],
                const float south[static restrict 1], float to[const restrict static 1]) {
  to[0] = here[0];
  for (int64_t c = 1; c < cols - 1; c++) to[c] = 0.2f * (here[c] + north[c] + south[c] + here[c - 1] + here[c + 1]);
  to[cols - 1] = here[cols - 1];
}

void jacobi2d(const float *restrict x, float *restrict out, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; r++) {
    const float *here = x + r * cols;
    if (r && r < rows - 1)
      row(cols, here - cols, here, here + cols, out + r * cols);
    else
      for (int64_t c = 0; c < cols; c++) out[r * cols + c] = here[c];
  }
}
