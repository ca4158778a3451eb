/* kernel: axpy
   outcome: solved

   A helper in assembly outside any function, with a constant of its own in a section of read-only data. */
#include <stdint.h>

#if defined(__x86_64__) && !defined(__ILP32__)
__asm__(
    ".text\n"
    ".p2align 4\n"
    ".type multiply_add, @function\n"
    "multiply_add:\n"
    "  mulss %xmm1, %xmm0\n"
    "  mulss one_kept_here(%rip), %xmm0\n"
    "  addss %xmm2, %xmm0\n"
    "  ret\n"
    ".size multiply_add, .-multiply_add\n"
    ".section .rodata\n"
    ".p2align 2\n"
    ".type one_kept_here, @object\n"
    "one_kept_here: .float 1.0\n"
    ".size one_kept_here, 4\n"
    ".text\n");
extern __attribute__((visibility("hidden"))) float multiply_add(float a, float x, float y);
#else
static float multiply_add(float a, float x, float y) { return a * x + y; }
#endif

void axpy(const float *x, const float *y, float *out, int64_t n, float a) {
  for (int64_t i = 0; i < n; i++) out[i] = multiply_add(a, x[i], y[i]);
}
