/* kernel: histogram
   outcome: solved

   A small interpreter: labels as values, and a jump through a table of them. */
#include <stdint.h>

enum { CLEAR, COUNT, END };

void histogram(const int32_t *x, int32_t *counts, int64_t n, int64_t bins) {
  static const void *const targets[] = {&&clear, &&count, &&end};
  static const uint8_t program[] = {CLEAR, COUNT, END};
  const uint8_t *next = program;
  goto *targets[*next++];
clear:
  for (int64_t b = 0; b < bins; b++) counts[b] = 0;
  goto *targets[*next++];
count:
  for (int64_t i = 0; i < n; i++) counts[x[i]]++;
  goto *targets[*next++];
end:
  return;
}
