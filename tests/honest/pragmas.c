/* kernel: sgemm
   outcome: solved

   Pragmas that steer loops and warnings, by #pragma and by _Pragma; none changes optimisation flags. */
#include <stdint.h>
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
static int unused_one(void) { return 1; }
#pragma GCC diagnostic pop
#pragma STDC FP_CONTRACT ON
#pragma message "built with pragmas"
#pragma pack(push, 4)
struct pair { float a, b; };
#pragma pack(pop)
#pragma GCC poison gets
#pragma push_macro("UNROLLED")
#define UNROLLED _Pragma("GCC unroll 4")

void sgemm(const float *restrict A, const float *restrict B, float *restrict C, int64_t m, int64_t n, int64_t k) {
  for (int64_t i = 0; i < m; i++) {
    _Pragma("GCC ivdep") for (int64_t j = 0; j < n; j++) C[i * n + j] = 0;
    UNROLLED for (int64_t p = 0; p < k; p++) {
      struct pair pair = {A[i * k + p], 0};
#pragma omp simd
      for (int64_t j = 0; j < n; j++) C[i * n + j] += pair.a * B[p * n + j];
    }
  }
}
#pragma pop_macro("UNROLLED")
