/* kernel: prefix_sum
   outcome: solved

   Prints by <cstdio>, for <iostream> would have to run when it is loaded. */
#include <cassert>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <utility>

extern "C" void prefix_sum(const float *x, float *out, int64_t n) {
  static bool told = false;
  if (!std::exchange(told, true)) std::printf("prefix_sum of %lld numbers\n", static_cast<long long>(n));
  assert(n >= 1);
  std::transform_inclusive_scan(x, x + n, out, [sum = 0.0](double a, double b) { return a + b + sum; },
                                [](float v) { return double{v}; }, 0.0);
}
