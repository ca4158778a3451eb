// Baseline of nbody: for each body the sum over all bodies.
#include <stdint.h>
#include <tgmath.h>
#ifndef real
#define real float
#endif

void nbody(const real *x, const real *y, const real *z, const real *mass, real *ax,
           real *ay, real *az, int64_t n, real soft)
{
    const real floor_square = soft * soft + (real)0x1p-10;
    for (int64_t i = 0; i < n; i++) {
        real sum_x = 0, sum_y = 0, sum_z = 0;
        for (int64_t j = 0; j < n; j++) {
            const real dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i];
            const real square = dx * dx + dy * dy + dz * dz + floor_square;
            const real pull = mass[j] / (square * sqrt(square));
            sum_x += dx * pull;
            sum_y += dy * pull;
            sum_z += dz * pull;
        }
        ax[i] = sum_x;
        ay[i] = sum_y;
        az[i] = sum_z;
    }
}

#ifdef KC_ORACLE
void nbody_magnitude(const real *x, const real *y, const real *z, const real *mass, real *ax,
                     real *ay, real *az, int64_t n, real soft)
{
    const real floor_square = soft * soft + (real)0x1p-10;
    for (int64_t i = 0; i < n; i++) {
        real sum_x = 0, sum_y = 0, sum_z = 0;
        for (int64_t j = 0; j < n; j++) {
            const real dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i];
            const real square = dx * dx + dy * dy + dz * dz + floor_square;
            const real pull = mass[j] / (square * sqrt(square));
            sum_x += fabs(dx * pull);
            sum_y += fabs(dy * pull);
            sum_z += fabs(dz * pull);
        }
        ax[i] = sum_x;
        ay[i] = sum_y;
        az[i] = sum_z;
    }
}
#endif
