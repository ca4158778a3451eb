/* kernel: segment_max
   outcome: solved

   Two functions that call each other, declared before either is known. */
#include <stdint.h>

static float even_step(const float *x, int64_t count, float best);
static float odd_step(const float *x, int64_t count, float best);

static float even_step(const float *x, int64_t count, float best) {
  if (!count) return best;
  return odd_step(x + 1, count - 1, x[0] > best ? x[0] : best);
}

static float odd_step(const float *x, int64_t count, float best) {
  if (!count) return best;
  return even_step(x + 1, count - 1, *x > best ? *x : best);
}

/* In halves down to short pieces: the steps above may well take a frame each. */
static float largest(const float *x, int64_t count, float best) {
  if (count <= 64) return even_step(x, count, best);
  return largest(x + count / 2, count - count / 2, largest(x, count / 2, best));
}

void segment_max(const int64_t *first, const float *x, float *out, int64_t segments, int64_t n, float start) {
  (void)n;
  for (int64_t s = 0; s < segments; s++) out[s] = largest(x + first[s], first[s + 1] - first[s], start);
}
