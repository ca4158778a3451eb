/* kernel: rmsnorm
   outcome: solved

   Squares as the norm of complex numbers, rows as valarrays, the sum by inner_product. */
#include <cmath>
#include <complex>
#include <cstdint>
#include <numeric>
#include <valarray>

extern "C" void rmsnorm(const float *x, const float *weight, float *out, int64_t rows, int64_t cols, float eps) {
  using Row = std::valarray<double>;
  auto size = static_cast<std::size_t>(cols);
  Row weights(size);
  for (std::size_t c = 0; c < size; c++) weights[c] = weight[c];
  for (int64_t r = 0; r < rows; r++) {
    Row row(size);
    double sum = 0;
    for (std::size_t c = 0; c < size; c++) row[c] = x[r * cols + int64_t(c)];
    for (double value : row) sum += std::norm(std::complex<double>(0, value) * std::complex<double>(0, 1));
    double same = std::inner_product(std::begin(row), std::end(row), std::begin(row), 0.0);
    Row scaled = row * weights / std::sqrt((sum + same) / 2 / double(cols) + double(eps));
    for (std::size_t c = 0; c < size; c++) out[r * cols + int64_t(c)] = float(scaled[c]);
  }
}
