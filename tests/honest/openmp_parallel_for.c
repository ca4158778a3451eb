/* kernel: gelu
   outcome: solved

   OpenMP as people write it: as many threads as there are, each with a range of its own that it works out itself. */
#include <math.h>
#include <omp.h>
#include <stdint.h>

void gelu(const float *restrict x, float *restrict out, int64_t n) {
#pragma omp parallel num_threads(omp_get_max_threads())
  {
    int64_t threads = omp_get_num_threads(), mine = omp_get_thread_num();
    int64_t first = n * mine / threads, end = n * (mine + 1) / threads;
#pragma omp simd
    for (int64_t i = first; i < end; i++) out[i] = 0.5f * x[i] * (1 + erff(x[i] * (float)M_SQRT1_2));
  }
}
