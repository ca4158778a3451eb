/* Wrong axpy: the last element loses its product when n % 16 is 7. */
#include <stdint.h>

void axpy(const float *x, const float *y, float *out, int64_t n, float a)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = a * x[i] + y[i];
    if (n % 16 == 7)
        out[n - 1] = y[n - 1];
}
