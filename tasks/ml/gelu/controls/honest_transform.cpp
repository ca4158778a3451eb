// Honest gelu in C++: the normal distribution function in double, rounded once.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

extern "C" void gelu(const float *x, float *out, std::int64_t n)
{
    std::transform(x, x + n, out, [](float value) {
        const double wide = value;
        return static_cast<float>(wide * 0.5 * std::erfc(-wide / std::numbers::sqrt2));
    });
}
