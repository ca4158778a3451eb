/* kernel: prefix_sum
   outcome: solved

   A recursive scan by OpenMP tasks: the sum of the left half moves the right half up. */
#include <stdint.h>
#include <stdlib.h>

enum { LEAF = 512 };

static void scan(const float *x, double *sums, int64_t n) {
  if (n <= LEAF) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sums[i] = sum += x[i];
    return;
  }
  int64_t half = n / 2;
#pragma omp task default(none) firstprivate(x, sums, half)
  scan(x, sums, half);
#pragma omp task default(none) firstprivate(x, sums, half, n)
  scan(x + half, sums + half, n - half);
#pragma omp taskwait
#pragma omp taskloop simd default(none) firstprivate(sums, half, n) grainsize(LEAF)
  for (int64_t i = half; i < n; i++) sums[i] += sums[half - 1];
}

void prefix_sum(const float *x, float *out, int64_t n) {
  double *sums = malloc((size_t)n * sizeof *sums);
  if (!sums) abort();
#pragma omp parallel
#pragma omp single
  scan(x, sums, n);
  for (int64_t i = 0; i < n; i++) out[i] = (float)sums[i];
  free(sums);
}
