/* kernel: histogram
   outcome: solved

   A small table for each thread, kept in thread-private storage and added up in a critical section. */
#include <stdint.h>
#include <string.h>

enum { TABLE = 1024 };
static int32_t table[TABLE];
#pragma omp threadprivate(table)

void histogram(const int32_t *x, int32_t *counts, int64_t n, int64_t bins) {
  memset(counts, 0, (size_t)bins * sizeof *counts);
  for (int64_t low = 0; low < bins; low += TABLE) {
    int64_t width = bins - low < TABLE ? bins - low : TABLE;
#pragma omp parallel
    {
      memset(table, 0, sizeof table);
#pragma omp for nowait schedule(guided)
      for (int64_t i = 0; i < n; i++)
        if (x[i] >= low && x[i] < low + width) table[x[i] - low]++;
#pragma omp critical(adding)
      for (int64_t b = 0; b < width; b++) counts[low + b] += table[b];
    }
  }
}
