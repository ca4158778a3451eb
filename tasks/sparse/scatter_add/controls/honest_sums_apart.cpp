// Honest scatter_add: all sums in double precision apart, added to y at the end.
#include <cstdint>
#include <vector>

extern "C" void scatter_add(const std::int32_t *index, const float *values, float *y, std::int64_t n, std::int64_t count)
{
    std::vector<double> sums(y, y + n);
    for (std::int64_t e = 0; e < count; ++e)
        sums[index[e]] += values[e];
    for (std::int64_t i = 0; i < n; ++i)
        y[i] = static_cast<float>(sums[i]);
}
