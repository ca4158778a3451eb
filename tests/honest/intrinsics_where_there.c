/* kernel: sgemm
   outcome: solved

   Intrinsics of AVX2 and FMA where the build has them, with non-temporal hints, gathers and a plain way beside it. */
#include <stdint.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif

static float dot(const float *a, const float *b, int64_t k, int64_t n) {
  float sum = 0;
  int64_t p = 0;
#if defined(__AVX2__) && defined(__FMA__)
  __m256 sums = _mm256_setzero_ps();
  __m256i steps = _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32((int)n));
  for (; p + 8 <= k; p += 8) {
    _mm_prefetch((const char *)(b + p * n), _MM_HINT_NTA);
    sums = _mm256_fmadd_ps(_mm256_loadu_ps(a + p), _mm256_i32gather_ps(b + p * n, steps, 4), sums);
  }
  float lanes[8];
  _mm256_storeu_ps(lanes, sums);
  _mm256_zeroupper();
  for (int lane = 0; lane < 8; lane++) sum += lanes[lane];
#endif
  for (; p < k; p++) sum += a[p] * b[p * n];
  return sum;
}

void sgemm(const float *A, const float *B, float *C, int64_t m, int64_t n, int64_t k) {
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) C[i * n + j] = dot(A + i * k, B + j, k, n);
}
