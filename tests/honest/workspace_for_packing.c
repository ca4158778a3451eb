/* kernel: sgemm
   outcome: solved
   workspace: 2097152

   Packs B column by column into the workspace that it asked for, as much of it at a time as fits. */
#include <stdint.h>

void sgemm(const float *A, const float *B, float *C, int64_t m, int64_t n, int64_t k, void *workspace,
           int64_t workspace_bytes) {
  float *packed = workspace;
  int64_t room = workspace_bytes / (int64_t)sizeof *packed / k;
  for (int64_t first = 0; first < n; first += room) {
    int64_t width = n - first < room ? n - first : room;
    for (int64_t j = 0; j < width; j++)
      for (int64_t p = 0; p < k; p++) packed[j * k + p] = B[p * n + first + j];
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < width; j++) {
        double sum = 0;
        for (int64_t p = 0; p < k; p++) sum += (double)A[i * k + p] * packed[j * k + p];
        C[i * n + first + j] = (float)sum;
      }
  }
}
