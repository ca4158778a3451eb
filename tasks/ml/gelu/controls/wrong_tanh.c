// Wrong gelu: the tanh formula, off by up to 5e-4.
#include <math.h>
#include <stdint.h>

void gelu(const float *x, float *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const float v = x[i];
        out[i] = 0.5f * v * (1.0f + tanhf(0.79788456f * (v + 0.044715f * v * v * v)));
    }
}
