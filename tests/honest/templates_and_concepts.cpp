/* kernel: sgemm
   outcome: solved

   Tiles of every shape from one template; a concept, a fold, if constexpr, a template's static member. */
#include <algorithm>
#include <concepts>
#include <cstdint>
#include <utility>

template <typename T>
concept Number = std::floating_point<T> && sizeof(T) >= 4;

template <int Rows>
struct Tiled {
  static int64_t tiles;
  static constexpr int rows = Rows;
};
template <int Rows>
int64_t Tiled<Rows>::tiles = 0;

template <Number T, int Rows>
static void tile(const T *a, const T *b, T *c, int64_t n, int64_t k) {
  for (int64_t j = 0; j < n; j++) {
    double sums[Rows] = {};
    for (int64_t p = 0; p < k; p++)
      [&]<int... R>(std::integer_sequence<int, R...>) {
        ((sums[R] += double(a[R * k + p]) * double(b[p * n + j])), ...);
      }(std::make_integer_sequence<int, Rows>{});
    for (int r = 0; r < Rows; r++) c[r * n + j] = T(sums[r]);
  }
  Tiled<Rows>::tiles++;
}

template <Number T, int Rows>
static void all(const T *a, const T *b, T *c, int64_t m, int64_t n, int64_t k) {
  int64_t i = 0;
  for (; i + Rows <= m; i += Rows) tile<T, Rows>(a + i * k, b, c + i * n, n, k);
  if constexpr (Rows > 1)
    if (i < m) all<T, Rows / 2>(a + i * k, b, c + i * n, m - i, n, k);
}

extern "C" void sgemm(const float *A, const float *B, float *C, int64_t m, int64_t n, int64_t k) {
  all<float, Tiled<8>::rows>(A, B, C, m, n, k);
}
