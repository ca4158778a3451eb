/* kernel: scatter_add
   outcome: solved

   Exceptions as control flow: thrown by the library and by itself, caught, thrown again, all within the call. */
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

struct Full : std::runtime_error {
  explicit Full(int64_t at) : std::runtime_error("full at " + std::to_string(at)), at(at) {}
  int64_t at;
};

static void fill(std::vector<double> &sums, const int32_t *index, const float *values, int64_t &next, int64_t count) {
  for (int64_t taken = 0; next < count; next++, taken++) {
    if (taken == 5000) throw Full(next);
    sums.at(static_cast<std::size_t>(index[next])) += values[next];
  }
}

extern "C" void scatter_add(const int32_t *index, const float *values, float *y, int64_t n, int64_t count) noexcept {
  std::vector<double> sums(y, y + n);
  for (int64_t next = 0; next < count;) {
    try {
      try {
        fill(sums, index, values, next, count);
        sums.at(sums.size()) = 0;
      } catch (const Full &full) {
        if (full.at != next) std::terminate();
        throw;
      } catch (const std::out_of_range &) {
        continue;
      }
    } catch (const std::exception &) {
      std::exception_ptr kept = std::current_exception();
      if (!kept) return;
    }
  }
  for (int64_t i = 0; i < n; i++) y[i] = static_cast<float>(sums[static_cast<std::size_t>(i)]);
}
