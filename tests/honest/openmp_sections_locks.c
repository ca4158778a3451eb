/* kernel: jacobi2d
   outcome: solved

   Sections for border and inside, a lock around a counter, collapsed loops. */
#include <omp.h>
#include <stdint.h>

void jacobi2d(const float *x, float *out, int64_t rows, int64_t cols) {
  int64_t done = 0;
  omp_lock_t lock;
  omp_init_lock(&lock);
#pragma omp parallel sections shared(done)
  {
#pragma omp section
    {
      for (int64_t c = 0; c < cols; c++) {
        out[c] = x[c];
        out[(rows - 1) * cols + c] = x[(rows - 1) * cols + c];
      }
      omp_set_lock(&lock);
      done += 2 * cols;
      omp_unset_lock(&lock);
    }
#pragma omp section
    {
      for (int64_t r = 1; r < rows - 1; r++) {
        out[r * cols] = x[r * cols];
        out[r * cols + cols - 1] = x[r * cols + cols - 1];
      }
      omp_set_lock(&lock);
      done += rows;
      omp_unset_lock(&lock);
    }
  }
  omp_destroy_lock(&lock);
  if (done < 0) return;
#pragma omp parallel for collapse(2) schedule(dynamic, 256)
  for (int64_t r = 1; r < rows - 1; r++)
    for (int64_t c = 1; c < cols - 1; c++) {
      const float *at = x + r * cols + c;
      out[r * cols + c] = 0.2f * (at[0] + at[-cols] + at[cols] + at[-1] + at[1]);
    }
}
