// Honest axpy: std::transform with a lambda.
#include <algorithm>
#include <cstdint>

extern "C" void axpy(const float *x, const float *y, float *out, std::int64_t n, float a)
{
    std::transform(x, x + n, y, out, [a](float left, float right) { return a * left + right; });
}
