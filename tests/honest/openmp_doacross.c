/* kernel: gauss_seidel2d
   outcome: solved

   A wavefront of strips: OpenMP's cross-iteration dependences let a row follow the one above. */
#include <stdint.h>

enum { STRIP = 32 };

static void points(const float *f, float *u, int64_t i, int64_t first, int64_t end, int64_t rows, int64_t cols) {
  for (int64_t j = first; j < end; j++) {
    float *at = u + i * cols + j;
    float north = i > 0 ? at[-cols] : 0, west = j > 0 ? at[-1] : 0;
    float east = j + 1 < cols ? at[1] : 0, south = i + 1 < rows ? at[cols] : 0;
    *at = 0.25f * (north + west + east + south + f[i * cols + j]);
  }
}

void gauss_seidel2d(const float *f, float *u, int64_t rows, int64_t cols) {
  int64_t strips = (cols + STRIP - 1) / STRIP;
#pragma omp parallel for ordered(2) schedule(static, 1)
  for (int64_t i = 0; i < rows; i++)
    for (int64_t s = 0; s < strips; s++) {
      int64_t end = (s + 1) * STRIP < cols ? (s + 1) * STRIP : cols;
#pragma omp ordered depend(sink : i - 1, s) depend(sink : i, s - 1)
      points(f, u, i, s * STRIP, end, rows, cols);
#pragma omp ordered depend(source)
    }
}
