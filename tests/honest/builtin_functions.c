/* kernel: segment_max
   outcome: solved

   The compiler's builtin functions, also those that end in a trap or claim what holds anyway. */
#include <stdint.h>

void segment_max(const int64_t *first, const float *x, float *out, int64_t segments, int64_t n, float start) {
  if (n < 0) __builtin_unreachable();
  for (int64_t s = 0; s < segments; s++) {
    int64_t count;
    if (__builtin_sub_overflow(first[s + 1], first[s], &count)) __builtin_trap();
    const float *from = __builtin_assume_aligned(x + first[s], 4);
    float best = start;
    for (int64_t i = 0; i < count; i++) {
      if (i + 16 < count) __builtin_prefetch(from + i + 16, 0, 1);
      if (__builtin_expect(__builtin_isgreater(from[i], best), 0)) best = __builtin_fmaxf(from[i], best);
    }
    uint32_t bits;
    __builtin_memcpy(&bits, &best, sizeof bits);
    int known = __builtin_constant_p(best) || __builtin_popcount(bits) >= 0;
    int zeros = bits ? __builtin_clz(bits) + __builtin_ctz(bits) : 0;
    out[s] = __builtin_choose_expr(sizeof(float) == 4, known && zeros < 64 ? best : start, start);
  }
}
