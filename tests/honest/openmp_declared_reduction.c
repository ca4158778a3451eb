/* kernel: argmax_rows
   outcome: solved

   A reduction of its own for OpenMP: the larger value wins, and of two equal ones the earlier. */
#include <stdint.h>

typedef struct {
  float value;
  int64_t where;
} best_t;

static inline best_t better(best_t a, best_t b) {
  if (a.value != b.value) return a.value > b.value ? a : b;
  return a.where < b.where ? a : b;
}

#pragma omp declare reduction(argmax : best_t : omp_out = better(omp_out, omp_in)) initializer(omp_priv = omp_orig)
#pragma omp declare simd notinbranch
static float same(float value) { return value; }

void argmax_rows(const float *x, int32_t *out, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; r++) {
    best_t best = {x[r * cols], 0};
#pragma omp parallel for reduction(argmax : best) num_threads(2)
    for (int64_t c = 0; c < cols; c++) best = better(best, (best_t){same(x[r * cols + c]), c});
    out[r] = (int32_t)best.where;
  }
}
