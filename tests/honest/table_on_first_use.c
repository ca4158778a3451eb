/* kernel: gelu
   outcome: solved

   A table of erf that is made by the first call and holds constants alone; later calls only read it. */
#include <math.h>
#include <stdint.h>

enum { STEPS = 64, LIMIT = 6 };

static const double (*derivatives(void))[5] {
  static double table[2 * STEPS * LIMIT + 1][5];
  static int made;
  if (!made) {
    for (int i = 0; i <= 2 * STEPS * LIMIT; i++) {
      double at = (double)(i - STEPS * LIMIT) / STEPS, slope = M_2_SQRTPI * exp(-at * at);
      table[i][0] = erf(at);
      table[i][1] = slope;
      table[i][2] = -at * slope;
      table[i][3] = (4 * at * at - 2) * slope / 6;
      table[i][4] = (12 * at - 8 * at * at * at) * slope / 24;
    }
    made = 1;
  }
  return (const double(*)[5])table;
}

static double erf_of(const double (*table)[5], double at) {
  if (fabs(at) >= LIMIT) return at < 0 ? -1 : 1;
  long place = lround(at * STEPS);
  const double *d = table[place + STEPS * LIMIT];
  double away = at - (double)place / STEPS;
  return d[0] + away * (d[1] + away * (d[2] + away * (d[3] + away * d[4])));
}

void gelu(const float *x, float *out, int64_t n) {
  const double(*table)[5] = derivatives();
  for (int64_t i = 0; i < n; i++) out[i] = (float)(0.5 * x[i] * (1 + erf_of(table, x[i] * M_SQRT1_2)));
}
