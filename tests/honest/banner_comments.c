/********************************\
   kernel: axpy
   outcome: solved
*                                *
*  Größe × Länge, in a frame.    *
\********************************/
#include <stdint.h>

/*\
|*| Corners that look like the continuation of a line.
\*/

//\\//\\//\\//\\//\\//\\//\\//\\ é
// "\\" '\' \" é

void axpy(const float *x, const float *y, float *out, int64_t n, float a) {
  /*******************************\
   * out = a x + y, it's that: é *
  \*******************************/
  for (int64_t i = 0; i < n; i++) out[i] = a * x[i] + y[i];
}
