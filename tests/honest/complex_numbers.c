/* kernel: nbody
   outcome: solved

   The plane as complex numbers, by <complex.h> and <tgmath.h>. */
#include <complex.h>
#include <stdint.h>
#include <tgmath.h>

void nbody(const float *x, const float *y, const float *z, const float *mass, float *ax, float *ay, float *az,
           int64_t n, float soft) {
  double floor_square = (double)soft * soft + 0x1p-10;
  for (int64_t i = 0; i < n; i++) {
    double complex here = x[i] + I * y[i], pulled = 0;
    double up = 0;
    for (int64_t j = 0; j < n; j++) {
      double complex apart = x[j] + I * y[j] - here;
      double rise = (double)z[j] - z[i];
      double square = creal(apart * conj(apart)) + rise * rise + floor_square;
      double pull = mass[j] / (square * sqrt(square));
      pulled += pull * apart;
      up += pull * rise;
    }
    ax[i] = (float)creal(pulled), ay[i] = (float)cimag(pulled), az[i] = (float)up;
  }
}
