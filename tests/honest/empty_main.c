/* kernel: segment_max
   outcome: solved

   A main that does nothing, left from trying the file as a program. */
#include <stdint.h>

void segment_max(const int64_t *first, const float *x, float *out, int64_t segments, int64_t n, float start) {
  (void)n;
  for (int64_t s = 0; s < segments; s++) {
    out[s] = start;
    for (int64_t i = first[s]; i < first[s + 1]; i++)
      if (out[s] < x[i]) out[s] = x[i];
  }
}

int main(void) { return 0; }
