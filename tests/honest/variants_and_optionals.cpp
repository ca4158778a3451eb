/* kernel: histogram
   outcome: solved

   A narrow or a wide table in a variant, an optional, a tuple, a visitor made of lambdas. */
#include <algorithm>
#include <any>
#include <cstdint>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

template <class... Parts>
struct Visitor : Parts... {
  using Parts::operator()...;
};

using Table = std::variant<std::vector<int64_t>, std::unordered_map<int32_t, int64_t>>;

static std::optional<Table> made(int64_t bins) {
  if (bins <= 0) return std::nullopt;
  if (bins < 64) return std::unordered_map<int32_t, int64_t>{};
  return std::vector<int64_t>(static_cast<std::size_t>(bins));
}

extern "C" void histogram(const int32_t *x, int32_t *counts, int64_t n, int64_t bins) {
  auto table = made(bins);
  if (!table) return;
  std::visit(
      [&](auto &cells) {
        for (int64_t i = 0; i < n; i++) cells[uint32_t(x[i])]++;
      },
      *table);
  std::any one = int64_t{1};
  auto [first, last] = std::tuple(int64_t{0}, bins);
  for (int64_t b = first; b < last; b++)
    counts[b] = static_cast<int32_t>(std::any_cast<int64_t>(one) *
                                     std::visit(Visitor{[b](std::vector<int64_t> &all) { return all.at(size_t(b)); },
                                                        [b](auto &some) { return some[int32_t(b)]; }},
                                                *table));
}
