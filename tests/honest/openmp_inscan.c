/* kernel: prefix_sum
   outcome: solved

   The scan directive of OpenMP 5. */
#include <stdint.h>

void prefix_sum(const float *x, float *out, int64_t n) {
  double sum = 0;
#pragma omp parallel for reduction(inscan, + : sum)
  for (int64_t i = 0; i < n; i++) {
    sum += x[i];
#pragma omp scan inclusive(sum)
    out[i] = (float)sum;
  }
}
