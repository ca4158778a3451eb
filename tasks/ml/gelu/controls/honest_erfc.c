// Honest gelu: erfc of -x, which does not cancel for negative x.
#include <math.h>
#include <stdint.h>

void gelu(const float *x, float *out, int64_t n)
{
    const float root_half = sqrtf(0.5f);
    for (const float *end = x + n; x != end; x++, out++)
        *out = 0.5f * *x * erfcf(-*x * root_half);
}
