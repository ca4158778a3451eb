/* kernel: logsumexp_rows
   outcome: solved

   A table computed by the compiler: 2^(i/256), by repeated roots; consteval, constinit, a literal of its own. */
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

consteval double operator""_steps(unsigned long long count) { return double(count); }

constexpr double root(double value) {
  double at = value;
  for (int i = 0; i < 40; i++) at = (at + value / at) / 2;
  return at;
}

constexpr std::array<double, 256> powers = [] {
  std::array<double, 256> table{1};
  double step = 2;
  for (int i = 0; i < 8; i++) step = root(step);
  for (std::size_t i = 1; i < table.size(); i++) table[i] = table[i - 1] * step;
  return table;
}();
static_assert(powers[128] > 1.41421356 && powers[128] < 1.41421357);
constinit static double scale = 256_steps * std::numbers::log2e;

static double decay(double below) {
  double whole = std::floor(-below * scale);
  if (whole < -256.0 * 1000) return 0;
  auto place = static_cast<int64_t>(whole);
  double rest = -below - whole / scale, power = powers[static_cast<std::size_t>(place & 255)];
  return std::ldexp(power * (1 + rest * (1 + rest * (0.5 + rest / 6))), int(place >> 8));
}

extern "C" void logsumexp_rows(const float *x, float *out, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; r++) {
    const float *row = x + r * cols;
    double top = row[0], sum = 0;
    for (int64_t c = 1; c < cols; c++) top = row[c] > top ? row[c] : top;
    for (int64_t c = 0; c < cols; c++) sum += decay(top - row[c]);
    out[r] = float(top + std::log(sum));
  }
}
