/* kernel: softmax_rows
   outcome: solved

   Names of the C library within namespaces, anonymous and inline ones, operators and a conversion of its own. */
#include <cmath>
#include <compare>
#include <cstdint>

namespace court::inline v2 {
struct Value {
  double held;
  explicit operator float() const { return static_cast<float>(held); }
  auto operator<=>(const Value &) const = default;
  Value &operator+=(Value other) { return held += other.held, *this; }
  friend Value operator/(Value a, Value b) { return {a.held / b.held}; }
  friend Value operator-(Value a, Value b) { return {a.held - b.held}; }
};
Value exp(Value v) { return {::exp(v.held)}; }
Value read(const float *at) { return {*at}; }
void write(float *at, Value v) { *at = static_cast<float>(v); }
int open = 0;
double time(double t) { return t; }
}  // namespace court::inline v2

namespace {
court::Value largest(const float *row, int64_t cols) {
  court::Value top = court::read(row);
  for (int64_t c = 1; c < cols; c++)
    if (court::Value next = court::read(row + c); next > top) top = next;
  return top;
}
}  // namespace

extern "C" void softmax_rows(const float *x, float *out, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; r++) {
    const float *row = x + r * cols;
    court::Value top = largest(row, cols), sum{court::time(0) + court::open};
    for (int64_t c = 0; c < cols; c++) sum += exp(court::read(row + c) - top);
    for (int64_t c = 0; c < cols; c++) court::write(out + r * cols + c, exp(court::read(row + c) - top) / sum);
  }
}
