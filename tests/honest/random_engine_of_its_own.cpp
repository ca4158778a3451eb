/* kernel: floyd_warshall
   outcome: solved

   Rows updated in a random order, by an engine with a fixed seed: within a step they do not depend on each other. */
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

extern "C" void floyd_warshall(float *dist, int64_t n) {
  std::mt19937_64 engine(20'24);
  std::vector<int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::vector<float> via(order.size());
  for (int64_t k = 0; k < n; k++) {
    std::shuffle(order.begin(), order.end(), engine);
    std::copy_n(dist + k * n, n, via.begin());
    for (int64_t i : order) {
      float *row = dist + i * n, first = row[k];
      std::transform(row, row + n, via.begin(), row, [first](float d, float v) { return std::min(d, first + v); });
    }
  }
}
