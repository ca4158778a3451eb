/* kernel: segment_max
   outcome: solved

   The compiler's own vector types, compared and blended lane by lane, shuffled to one value at the end. */
#include <stdint.h>
#include <string.h>

typedef float v8 __attribute__((vector_size(32)));
typedef int32_t m8 __attribute__((vector_size(32)));

static float largest(const float *x, int64_t count, float start) {
  v8 best = {start, start, start, start, start, start, start, start};
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    v8 next;
    memcpy(&next, x + i, sizeof next);
    m8 larger = next > best;
    best = (v8)((larger & (m8)next) | (~larger & (m8)best));
  }
  for (int half = 4; half; half /= 2) {
    m8 turned = ((m8){0, 1, 2, 3, 4, 5, 6, 7} + half) & 7;
    v8 other = __builtin_shuffle(best, turned);
    m8 larger = other > best;
    best = (v8)((larger & (m8)other) | (~larger & (m8)best));
  }
  float top = best[0];
  for (; i < count; i++) top = x[i] > top ? x[i] : top;
  return top;
}

void segment_max(const int64_t *first, const float *x, float *out, int64_t segments, int64_t n, float start) {
  (void)n;
  for (int64_t s = 0; s < segments; s++) out[s] = largest(x + first[s], first[s + 1] - first[s], start);
}
