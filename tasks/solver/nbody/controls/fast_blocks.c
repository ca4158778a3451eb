// Fast nbody: 16 bodies in lanes against one source at a time, so roots and quotients are vectors.
#include <math.h>
#include <stdint.h>

enum { LANES = 16 };

void nbody(const float *restrict x, const float *restrict y, const float *restrict z,
           const float *restrict mass, float *restrict ax, float *restrict ay, float *restrict az,
           int64_t n, float soft)
{
    const float softening = soft * soft + 0x1p-10f;
    for (int64_t start = 0; start < n; start += LANES) {
        const int64_t filled = n - start < LANES ? n - start : LANES;
        float px[LANES] = {0}, py[LANES] = {0}, pz[LANES] = {0};
        float sx[LANES] = {0}, sy[LANES] = {0}, sz[LANES] = {0};
        for (int64_t l = 0; l < filled; l++) {
            px[l] = x[start + l];
            py[l] = y[start + l];
            pz[l] = z[start + l];
        }
        for (int64_t j = 0; j < n; j++) {
            for (int l = 0; l < LANES; l++) {
                const float dx = x[j] - px[l], dy = y[j] - py[l], dz = z[j] - pz[l];
                const float square = dx * dx + dy * dy + dz * dz + softening;
                const float pull = mass[j] / (square * sqrtf(square));
                sx[l] += dx * pull;
                sy[l] += dy * pull;
                sz[l] += dz * pull;
            }
        }
        for (int64_t l = 0; l < filled; l++) {
            ax[start + l] = sx[l];
            ay[start + l] = sy[l];
            az[start + l] = sz[l];
        }
    }
}
