/* kernel: logsumexp_rows
   outcome: solved

   malloc, calloc, realloc, aligned_alloc, posix_memalign, and huge pages asked for; all of it freed again. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static double largest(const float *row, int64_t cols) {
  float top = row[0];
  for (int64_t c = 1; c < cols; c++) top = row[c] > top ? row[c] : top;
  return top;
}

void logsumexp_rows(const float *x, float *out, int64_t rows, int64_t cols) {
  size_t bytes = (size_t)cols * sizeof(double), rounded = (bytes + 63) / 64 * 64;
  void *pages = 0;
  double *terms = aligned_alloc(64, rounded), *tops = malloc(sizeof *tops), *sums = calloc((size_t)rows, sizeof *sums);
  if (posix_memalign(&pages, 1 << 21, 1 << 21) || !terms || !tops || !sums) abort();
  madvise(pages, 1 << 21, MADV_HUGEPAGE);
  memset(pages, 0, 4096);
  for (int64_t r = 0; r < rows; r++) {
    double *more = realloc(tops, (size_t)(r + 1) * sizeof *tops);
    if (!more) abort();
    tops = more;
    tops[r] = largest(x + r * cols, cols);
    for (int64_t c = 0; c < cols; c++) terms[c] = exp(x[r * cols + c] - tops[r]);
    for (int64_t c = 0; c < cols; c++) sums[r] += terms[c];
  }
  for (int64_t r = 0; r < rows; r++) out[r] = (float)(tops[r] + log(sums[r]) + *(double *)pages);
  free(pages), free(sums), free(tops), free(terms);
}
