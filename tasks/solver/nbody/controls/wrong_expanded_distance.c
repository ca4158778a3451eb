// Wrong nbody: the distance as |a|^2 + |b|^2 - 2 a.b, which loses all digits of close bodies.
#include <math.h>
#include <stdint.h>

void nbody(const float *x, const float *y, const float *z, const float *mass, float *ax, float *ay, float *az,
           int64_t n, float soft)
{
    for (int64_t i = 0; i < n; i++) {
        const float own = x[i] * x[i] + y[i] * y[i] + z[i] * z[i];
        float sum_x = 0, sum_y = 0, sum_z = 0;
        for (int64_t j = 0; j < n; j++) {
            const float other = x[j] * x[j] + y[j] * y[j] + z[j] * z[j];
            const float dot = x[i] * x[j] + y[i] * y[j] + z[i] * z[j];
            const float square = fmaxf(own + other - 2.0f * dot, 0.0f) + soft * soft + 0x1p-10f;
            const float pull = mass[j] / (square * sqrtf(square));
            sum_x += (x[j] - x[i]) * pull;
            sum_y += (y[j] - y[i]) * pull;
            sum_z += (z[j] - z[i]) * pull;
        }
        ax[i] = sum_x;
        ay[i] = sum_y;
        az[i] = sum_z;
    }
}
