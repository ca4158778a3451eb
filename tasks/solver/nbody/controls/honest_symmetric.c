// Honest nbody: each pair once, equal and opposite forces, cube of a reciprocal root.
#include <math.h>
#include <stdint.h>

void nbody(const float *x, const float *y, const float *z, const float *mass, float *ax, float *ay, float *az,
           int64_t n, float soft)
{
    for (int64_t i = 0; i < n; i++)
        ax[i] = ay[i] = az[i] = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = i + 1; j < n; j++) {
            const float dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i];
            const float inverse = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz + soft * soft + 0x1p-10f);
            const float cube = inverse * inverse * inverse;
            ax[i] += mass[j] * cube * dx;
            ay[i] += mass[j] * cube * dy;
            az[i] += mass[j] * cube * dz;
            ax[j] -= mass[i] * cube * dx;
            ay[j] -= mass[i] * cube * dy;
            az[j] -= mass[i] * cube * dz;
        }
    }
}
