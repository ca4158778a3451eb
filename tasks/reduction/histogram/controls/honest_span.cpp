// Honest histogram in C++: runs of equal values are added at once.
#include <algorithm>
#include <cstdint>
#include <span>

extern "C" void histogram(const std::int32_t *x, std::int32_t *counts, std::int64_t n, std::int64_t bins)
{
    const std::span values(x, static_cast<std::size_t>(n));
    const std::span table(counts, static_cast<std::size_t>(bins));
    std::fill(table.begin(), table.end(), 0);
    for (auto at = values.begin(); at != values.end();) {
        const std::int32_t value = *at;
        const auto start = at;
        do
            ++at;
        while (at != values.end() && *at == value);
        table[static_cast<std::size_t>(value)] += static_cast<std::int32_t>(at - start);
    }
}
