// Honest prefix_sum: std::inclusive_scan with a double accumulator.
#include <cstdint>
#include <functional>
#include <numeric>

extern "C" void prefix_sum(const float *x, float *out, std::int64_t n)
{
    std::inclusive_scan(x, x + n, out, std::plus<double>{}, 0.0);
}
