/* Honest axpy: unrolled by four with a separate tail. */
#include <stdint.h>

void axpy(const float *x, const float *y, float *out, int64_t n, float a)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        float p0 = a * x[i], p1 = a * x[i + 1], p2 = a * x[i + 2], p3 = a * x[i + 3];
        out[i] = p0 + y[i];
        out[i + 1] = p1 + y[i + 1];
        out[i + 2] = p2 + y[i + 2];
        out[i + 3] = p3 + y[i + 3];
    }
    for (; i < n; i++)
        out[i] = a * x[i] + y[i];
}
