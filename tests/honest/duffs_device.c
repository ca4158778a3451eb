/* kernel: axpy
   outcome: solved

   A loop entered in its middle by a switch, which falls through on purpose. */
#include <stdint.h>

void axpy(const float *x, const float *y, float *out, int64_t n, float a) {
  int64_t turns = (n + 7) / 8;
  if (!n) return;
  switch (n % 8) {
  case 0:
    do {
      *out++ = a * *x++ + *y++; /* fall through */
  case 7: *out++ = a * *x++ + *y++; /* fall through */
  case 6: *out++ = a * *x++ + *y++; /* fall through */
  case 5: *out++ = a * *x++ + *y++; /* fall through */
  case 4: *out++ = a * *x++ + *y++; /* fall through */
  case 3: *out++ = a * *x++ + *y++; /* fall through */
  case 2: *out++ = a * *x++ + *y++; /* fall through */
  case 1: *out++ = a * *x++ + *y++;
    } while (--turns > 0);
  }
}
