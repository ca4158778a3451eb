/* kernel: nbody
   outcome: solved

   Parameters declared after their list, `register`, comma operators: C as it once was. */
#include <math.h>
#include <stdint.h>

static double pull_of(mass, square)
  double mass;
  register double square;
{
  return mass / (square * sqrt(square));
}

static double squared();

/* With a prototype: without one `soft` would come as a double. */
void nbody(const float *x, const float *y, const float *z, const float *mass, float *ax, float *ay, float *az,
           int64_t n, float soft) {
  register int64_t i, j;
  auto double d[3], sum[3], pull;
  for (i = 0; i < n; ax[i] = (float)sum[0], ay[i] = (float)sum[1], az[i] = (float)sum[2], i++)
    for (j = 0, sum[0] = sum[1] = sum[2] = 0; j < n; j++) {
      d[0] = (double)x[j] - x[i], d[1] = (double)y[j] - y[i], d[2] = (double)z[j] - z[i];
      pull = pull_of((double)mass[j], squared(d) + (double)soft * soft + 0x1p-10);
      sum[0] += 0[d] * pull, sum[1] += 1[d] * pull, sum[2] += 2[d] * pull;
    }
}

static double squared(d)
  double *d;
{
  return d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
}
