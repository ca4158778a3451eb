/* kernel: logsumexp_rows
   outcome: solved

   Text in between: numbers written by to_chars and an output string stream, read again by from_chars. */
#include <charconv>
#include <cmath>
#include <cstdint>
#include <iomanip>
#include <sstream>
#include <string>
#include <string_view>

static float there_and_back(float value) {
  char text[32];
  auto [end, failed] = std::to_chars(text, text + sizeof text, value);
  float read = 0;
  std::from_chars(text, end, read);
  return failed == std::errc{} ? read : value;
}

extern "C" void logsumexp_rows(const float *x, float *out, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; r++) {
    double top = x[r * cols], sum = 0;
    for (int64_t c = 1; c < cols; c++) top = std::fmax(top, x[r * cols + c]);
    for (int64_t c = 0; c < cols; c++) sum += std::exp(x[r * cols + c] - top);
    std::ostringstream text;
    text << std::setprecision(9) << static_cast<float>(top + std::log(sum));
    std::string held = text.str() + " = log Σ exp";
    out[r] = there_and_back(std::stof(held.substr(0, held.find(' '))));
  }
}
