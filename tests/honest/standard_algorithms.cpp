/* kernel: argmax_rows
   outcome: solved

   The answer by sorting, ranges, views, a heap and a set: five ways that have to agree. */
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <queue>
#include <ranges>
#include <set>
#include <span>
#include <vector>

extern "C" void argmax_rows(const float *x, int32_t *out, int64_t rows, int64_t cols) {
  std::vector<int32_t> places(static_cast<std::size_t>(cols));
  for (int64_t r = 0; r < rows; r++) {
    std::span<const float> row(x + r * cols, static_cast<std::size_t>(cols));
    auto value = [row](int32_t c) { return row[static_cast<std::size_t>(c)]; };
    std::iota(places.begin(), places.end(), 0);
    std::stable_sort(places.begin(), places.end(), [&](int32_t a, int32_t b) { return value(a) > value(b); });
    int32_t sorted = places.front();
    auto ranged = static_cast<int32_t>(std::ranges::max_element(row) - row.begin());
    auto later = [&](int32_t a, int32_t b) { return value(a) < value(b) || (value(a) == value(b) && a > b); };
    std::priority_queue<int32_t, std::vector<int32_t>, decltype(later)> heap(later, places);
    auto equal = std::views::iota(int32_t{0}, static_cast<int32_t>(cols)) |
                 std::views::filter([&](int32_t c) { return value(c) == value(ranged); });
    std::set<int32_t> first(equal.begin(), equal.end());
    out[r] = sorted == ranged && heap.top() == *first.begin() ? sorted : -1;
  }
}
