// Honest gauss_seidel2d: the grid with a frame of zeros around it, in double precision.
#include <algorithm>
#include <cstdint>
#include <vector>

extern "C" void gauss_seidel2d(const float *f, float *u, std::int64_t rows, std::int64_t cols)
{
    const std::int64_t width = cols + 2;
    std::vector<double> grid((rows + 2) * width, 0.0);
    for (std::int64_t i = 0; i < rows; ++i)
        std::copy(u + i * cols, u + (i + 1) * cols, grid.begin() + (i + 1) * width + 1);
    for (std::int64_t i = 0; i < rows; ++i) {
        double *row = grid.data() + (i + 1) * width + 1;
        for (std::int64_t j = 0; j < cols; ++j) {
            row[j] = 0.25 * (row[j - width] + row[j - 1] + row[j + 1] + row[j + width] + f[i * cols + j]);
            u[i * cols + j] = static_cast<float>(row[j]);
        }
    }
}
