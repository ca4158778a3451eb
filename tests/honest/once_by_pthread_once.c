/* kernel: logsumexp_rows
   outcome: solved

   A table of powers of two made once, however many threads ask for it. */
#include <math.h>
#include <pthread.h>
#include <stdint.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static double powers[1024];

static void fill(void) {
  for (int i = 0; i < 1024; i++) powers[i] = exp2((double)-i);
}

/* exp(-below), by the whole part of below / log(2) from the table. */
static double decay(double below) {
  double whole = floor(below * M_LOG2E);
  return whole < 1024 ? powers[(int)whole] * exp(whole * M_LN2 - below) : 0;
}

void logsumexp_rows(const float *x, float *out, int64_t rows, int64_t cols) {
#pragma omp parallel for
  for (int64_t r = 0; r < rows; r++) {
    pthread_once(&once, fill);
    const float *row = x + r * cols;
    double top = row[0], sum = 0;
    for (int64_t c = 1; c < cols; c++) top = fmax(top, row[c]);
    for (int64_t c = 0; c < cols; c++) sum += decay(top - row[c]);
    out[r] = (float)(top + log(sum));
  }
}
