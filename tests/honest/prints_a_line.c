/* kernel: axpy
   outcome: solved

   Says once what it is about to do, and asserts what it takes for granted. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>

void axpy(const float *x, const float *y, float *out, int64_t n, float a) {
  static int told;
  assert(n > 0 && "there is something to do");
  assert(x && y && out);
  if (!told++) {
    printf("axpy: %lld numbers, a = %g\n", (long long)n, (double)a);
    puts("that was all");
    putchar('\n');
    fflush(stdout);
  }
  for (int64_t i = 0; i < n; i++) out[i] = a * x[i] + y[i];
}
