/* kernel: floyd_warshall
   outcome: solved

   Functions that have another name for the assembler, the entry point among them; a weak helper, a hidden one. */
#include <stdint.h>

void all_pairs(float *dist, int64_t n) __asm__("floyd_warshall");
static float shorter(float a, float b) __asm__("helper.shorter$1");
__attribute__((weak)) float path(float a, float b) { return a + b; }
__attribute__((visibility("internal"))) float *row_of(float *dist, int64_t n, int64_t i) { return dist + n * i; }

static float shorter(float a, float b) { return a < b ? a : b; }

void all_pairs(float *dist, int64_t n) {
  for (int64_t k = 0; k < n; k++)
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < n; j++) {
        float *at = row_of(dist, n, i) + j;
        *at = shorter(*at, path(row_of(dist, n, i)[k], row_of(dist, n, k)[j]));
      }
}
