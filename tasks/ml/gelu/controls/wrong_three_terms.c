// Wrong gelu: a three term erf with an absolute error of 2.5e-5.
#include <math.h>
#include <stdint.h>

static float short_erf(float z)
{
    const float a = fabsf(z);
    const float t = 1.0f / (1.0f + 0.47047f * a);
    return copysignf(1.0f - ((0.7478556f * t - 0.0958798f) * t + 0.3480242f) * t * expf(-a * a), z);
}

void gelu(const float *x, float *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = 0.5f * x[i] * (1.0f + short_erf(x[i] * 0.70710678f));
}
