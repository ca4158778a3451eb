/* kernel: rmsnorm
   outcome: solved

   A sum of floats by an OpenMP reduction: its last bits follow the number of threads, which is rounding, no fault. */
#include <math.h>
#include <stdint.h>

void rmsnorm(const float *x, const float *weight, float *out, int64_t rows, int64_t cols, float eps) {
  for (int64_t r = 0; r < rows; r++) {
    const float *row = x + r * cols;
    float sum = 0;
#pragma omp parallel for simd reduction(+ : sum) num_threads(3) schedule(static)
    for (int64_t c = 0; c < cols; c++) sum += row[c] * row[c];
    float scale = 1 / sqrtf(sum / (float)cols + eps);
#pragma omp parallel for simd schedule(static, 64)
    for (int64_t c = 0; c < cols; c++) out[r * cols + c] = row[c] * scale * weight[c];
  }
}
