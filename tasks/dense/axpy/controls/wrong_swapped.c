/* Wrong axpy: scales y instead of x. */
#include <stdint.h>

void axpy(const float *x, const float *y, float *out, int64_t n, float a)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = a * y[i] + x[i];
}
