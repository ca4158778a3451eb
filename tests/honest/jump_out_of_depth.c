/* kernel: argmax_rows
   outcome: solved

   A search that leaves its recursion by longjmp, back into the same call of the kernel. */
#include <setjmp.h>
#include <stdint.h>

typedef struct {
  jmp_buf found;
  const float *row;
  float wanted;
  volatile int64_t where;
} search_t;

static void look(search_t *search, int64_t first, int64_t end) {
  if (end - first > 1) {
    look(search, first, first + (end - first) / 2);
    look(search, first + (end - first) / 2, end);
  } else if (search->row[first] == search->wanted) {
    search->where = first;
    longjmp(search->found, 1);
  }
}

static int64_t first_place(const float *row, int64_t cols) {
  search_t search = {.row = row, .wanted = row[0]};
  for (int64_t c = 1; c < cols; c++)
    if (row[c] > search.wanted) search.wanted = row[c];
  if (!setjmp(search.found)) look(&search, 0, cols);
  return search.where;
}

void argmax_rows(const float *x, int32_t *out, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; r++) out[r] = (int32_t)first_place(x + r * cols, cols);
}
