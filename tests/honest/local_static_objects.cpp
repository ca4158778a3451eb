/* kernel: gelu
   outcome: solved

   Objects made when a function is first called, with destructors that would run at the end of the program. */
#include <cmath>
#include <cstdint>
#include <map>
#include <mutex>
#include <numbers>
#include <string>
#include <vector>

static const std::vector<double> &halves() {
  static const std::vector<double> table = [] {
    std::vector<double> made;
    for (int i = 0; i < 64; i++) made.push_back(std::ldexp(1.0, -i));
    return made;
  }();
  return table;
}

static double named(const std::string &name) {
  static std::once_flag once;
  static std::map<std::string, double> constants;
  std::call_once(once, [] { constants = {{"root of a half", std::numbers::sqrt2 / 2}, {"one", 1}}; });
  return constants.at(name);
}

extern "C" void gelu(const float *x, float *out, int64_t n) {
  thread_local std::vector<double> scratch;
  scratch.assign(x, x + n);
  double root = named("root of a half"), one = named("one"), half = halves()[1];
  for (int64_t i = 0; i < n; i++) {
    double at = scratch[static_cast<std::size_t>(i)];
    out[i] = float(half * at * (one + std::erf(at * root)));
  }
}
