// Wrong nbody: the last source is left out when n % 16 == 7.
#include <math.h>
#include <stdint.h>

void nbody(const float *x, const float *y, const float *z, const float *mass, float *ax, float *ay, float *az,
           int64_t n, float soft)
{
    const int64_t sources = n % 16 == 7 ? n - 1 : n;
    for (int64_t i = 0; i < n; i++) {
        float sum_x = 0, sum_y = 0, sum_z = 0;
        for (int64_t j = 0; j < sources; j++) {
            const float dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i];
            const float square = dx * dx + dy * dy + dz * dz + soft * soft + 0x1p-10f;
            const float pull = mass[j] / (square * sqrtf(square));
            sum_x += dx * pull;
            sum_y += dy * pull;
            sum_z += dz * pull;
        }
        ax[i] = sum_x;
        ay[i] = sum_y;
        az[i] = sum_z;
    }
}
