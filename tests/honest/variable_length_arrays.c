/* kernel: sgemm
   outcome: solved

   Pointers to arrays of variable length as parameters, and such an array on the stack. */
#include <stdint.h>

static void multiply(int64_t m, int64_t n, int64_t k, const float (*a)[k], const float (*b)[n], float (*c)[n]) {
  for (int64_t i = 0; i < m; i++) {
    double row[n];
    for (int64_t j = 0; j < n; j++) row[j] = 0;
    for (int64_t p = 0; p < k; p++)
      for (int64_t j = 0; j < n; j++) row[j] += (double)a[i][p] * b[p][j];
    for (int64_t j = 0; j < n; j++) c[i][j] = (float)row[j];
  }
}

void sgemm(const float *A, const float *B, float *C, int64_t m, int64_t n, int64_t k) {
  multiply(m, n, k, (const float (*)[k])A, (const float (*)[n])B, (float (*)[n])C);
}
