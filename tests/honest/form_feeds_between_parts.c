/* kernel: segment_max
   outcome: solved

   Form feeds and a vertical tab between its parts, as old editors like them. */
#include <stdint.h>

static float larger(float a, float b) { return a > b ? a : b; }


void segment_max(const int64_t *first, const float *x, float *out, int64_t segments, int64_t n, float start) {
  (void)n;
  for (int64_t s = 0; s < segments; s++) {
    out[s] = start;
    for (int64_t i = first[s]; i < first[s + 1]; i++) out[s] = larger(out[s], x[i]);
  }
}
