/* kernel: rmsnorm
   outcome: solved

   Attributes that change neither which instructions are used nor what runs when. */
#include <math.h>
#include <stdint.h>

#define SMALL static inline __attribute__((always_inline, const, unused))

static const float one __attribute__((aligned(64))) = 1;
static float spare[16] __attribute__((section(".data.spare"), used));
typedef float packed_t __attribute__((may_alias, aligned(4)));
struct __attribute__((packed)) head {
  char tag;
  float value;
};

SMALL float square(float v) { return v * v; }
__attribute__((visibility("hidden"), hot, noinline, noclone, pure, nonnull(1))) double sum_of_squares(const float *row,
                                                                                                    int64_t cols) {
  double sum = 0;
  for (int64_t c = 0; c < cols; c++) sum += square(row[c]);
  return sum;
}
__attribute__((cold, noreturn, unused)) static void never(void) { __builtin_trap(); }
__attribute__((deprecated("nobody calls it"), unused)) static int old(void) { return 1; }
static float whole(float) __attribute__((alias("whole_body"), unused));
__attribute__((used)) static float whole_body(float v) { return v; }
static void forget(float **held) { *held = 0; }

__attribute__((visibility("default"), flatten, nothrow, access(write_only, 3))) void rmsnorm(
    const float *x, const float *weight, float *out, int64_t rows, int64_t cols, float eps) {
  struct head head = {'w', one};
  for (int64_t r = 0; r < rows; r++) {
    __attribute__((cleanup(forget))) float *held = spare;
    const packed_t *row = x + r * cols;
    float scale = head.value / sqrtf((float)(sum_of_squares(row, cols) / (double)cols) + eps);
    for (int64_t c = 0; c < cols; c++) out[r * cols + c] = row[c] * scale * weight[c] + held[c % 16];
    if (__builtin_expect(cols < 0, 0)) never();
  }
}
