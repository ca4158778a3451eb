/* kernel: scatter_add
   outcome: solved

   _Generic, __auto_type, typeof, compound literals, designated initialisers, anonymous members. */
#include <stdint.h>

#define WIDER(value) _Generic((value), float: (double)(value), int32_t: (int64_t)(value), default: (value))

typedef struct {
  union {
    struct { const int32_t *index; const float *values; };
    const void *both[2];
  };
  struct { int64_t first, end; } range;
} view_t;

static void added(view_t view, float *y) {
  for (__auto_type e = view.range.first; e < view.range.end; e++) {
    __typeof__(*y) *at = &y[WIDER(view.index[e])];
    *at = (float)(WIDER(*at) + WIDER(view.values[e]));
  }
}

void scatter_add(const int32_t *index, const float *values, float *y, int64_t n, int64_t count) {
  (void)n;
  added((view_t){.index = index, .values = values, .range = {.end = count / 2}}, y);
  added((view_t){{{index, values}}, .range.first = count / 2, .range.end = count}, y);
}
