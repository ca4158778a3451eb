/* kernel: jacobi2d
   outcome: solved

   The stencil as a std::function of lambdas that hold others, one of them mutable, one recursive. */
#include <cstdint>
#include <functional>

using Point = std::function<float(const float *)>;

static Point inside(int64_t cols) {
  auto beside = [cols](int down, int right) { return [=](const float *at) { return at[down * cols + right]; }; };
  auto plus = [](Point a, Point b) -> Point { return [a, b](const float *at) { return a(at) + b(at); }; };
  Point sum = plus(beside(0, 0), plus(plus(beside(-1, 0), beside(1, 0)), plus(beside(0, -1), beside(0, 1))));
  return std::bind(std::multiplies<float>{}, 0.2f, std::bind(sum, std::placeholders::_1));
}

extern "C" void jacobi2d(const float *x, float *out, int64_t rows, int64_t cols) {
  Point average = inside(cols), same = [](const float *at) { return *at; };
  auto count = [seen = int64_t{0}]() mutable { return seen++; };
  std::function<void(int64_t)> row = [&](int64_t r) {
    for (int64_t c = 0; c < cols; c++) {
      bool border = r == 0 || r == rows - 1 || c == 0 || c == cols - 1;
      out[r * cols + c] = (border ? same : average)(x + count());
    }
    if (r + 1 < rows) row(r + 1);
  };
  row(0);
}
