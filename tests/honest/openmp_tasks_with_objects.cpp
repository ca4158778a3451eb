/* kernel: gauss_seidel2d
   outcome: solved

   A task for each tile of the grid, ordered by their dependences; an object is handed to each. */
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

struct Grid {
  const float *f;
  float *u;
  int64_t rows, cols;
  float value(int64_t i, int64_t j) const { return i < 0 || j < 0 || i >= rows || j >= cols ? 0 : u[i * cols + j]; }
  void sweep(int64_t i0, int64_t i1, int64_t j0, int64_t j1) const {
    for (int64_t i = i0; i < i1; i++)
      for (int64_t j = j0; j < j1; j++)
        u[i * cols + j] =
            0.25f * (value(i - 1, j) + value(i, j - 1) + value(i, j + 1) + value(i + 1, j) + f[i * cols + j]);
  }
};

extern "C" void gauss_seidel2d(const float *f, float *u, int64_t rows, int64_t cols) {
  constexpr int64_t side = 32;
  auto grid = std::make_shared<const Grid>(Grid{f, u, rows, cols});
  int64_t down = (rows + side - 1) / side + 1, across = (cols + side - 1) / side + 1;
  std::vector<char> marks(static_cast<std::size_t>(down * across));
  char *mark = marks.data();
#pragma omp parallel num_threads(2)
#pragma omp single
  for (int64_t i = 1; i < down; i++)
    for (int64_t j = 1; j < across; j++) {
#pragma omp task firstprivate(grid, i, j) depend(in : mark[(i - 1) * across + j], mark[i * across + j - 1]) \
    depend(out : mark[i * across + j])
      grid->sweep((i - 1) * side, std::min(i * side, grid->rows), (j - 1) * side, std::min(j * side, grid->cols));
    }
}
