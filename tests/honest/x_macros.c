/* kernel: jacobi2d
   outcome: solved

   The five points of the stencil are one list, from which macros make an enumeration, two tables and a sum. */
#include <stdint.h>

#define POINTS(X) X(CENTRE, 0, 0) X(NORTH, -1, 0) X(SOUTH, 1, 0) X(WEST, 0, -1) X(EAST, 0, 1)
#define AS_NAME(name, down, right) name,
#define AS_DOWN(name, down, right) [name] = down,
#define AS_RIGHT(name, down, right) [name] = right,
#define AS_TERM(name, down, right) +at[down_of[name] * cols + right_of[name]]
#define JOINED_(a, b) a##b
#define JOINED(a, b) JOINED_(a, b)
#define TEXT(...) #__VA_ARGS__

enum { POINTS(AS_NAME) COUNT };
static const int down_of[COUNT] = {POINTS(AS_DOWN)};
static const int right_of[COUNT] = {POINTS(AS_RIGHT)};
static const char listed[] = TEXT(POINTS(AS_NAME));
_Static_assert(sizeof listed > COUNT, "every point has a name");

static float JOINED(average_of_, 5)(const float *at, int64_t cols) { return 0.2f * (POINTS(AS_TERM)); }

void JOINED(jacobi, 2d)(const float *x, float *out, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < cols; c++) {
      int border = !r || !c || r == rows - 1 || c == cols - 1;
      const float *at = x + r * cols + c;
      out[r * cols + c] = border ? *at : average_of_5(at, cols);
    }
}
