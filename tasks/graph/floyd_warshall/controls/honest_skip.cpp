// Honest floyd_warshall in C++: the vertices are taken from last to first, hopeless rows are skipped.
#include <algorithm>
#include <cstdint>
#include <span>

extern "C" void floyd_warshall(float *dist, std::int64_t n)
{
    const auto size = static_cast<std::size_t>(n);
    const auto row = [=](std::size_t i) { return std::span(dist + i * size, size); };
    for (std::size_t k = size; k-- > 0;) {
        const auto via = row(k);
        const float nearest = *std::min_element(via.begin(), via.end());
        for (std::size_t i = 0; i < size; ++i) {
            const auto from = row(i);
            const float start = from[k];
            if (start + nearest >= *std::max_element(from.begin(), from.end()))
                continue;
            std::transform(from.begin(), from.end(), via.begin(), from.begin(),
                           [start](float known, float rest) { return std::min(known, start + rest); });
        }
    }
}
