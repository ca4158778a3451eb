// Honest softmax_rows: standard algorithms, double precision inside, a reciprocal instead of divisions.
#include <algorithm>
#include <cmath>
#include <cstdint>

extern "C" void softmax_rows(const float *x, float *out, std::int64_t rows, std::int64_t cols)
{
    for (std::int64_t r = 0; r < rows; ++r, x += cols, out += cols) {
        const double top = *std::max_element(x, x + cols);
        double sum = 0.0;
        for (std::int64_t c = 0; c < cols; ++c)
            sum += std::exp(static_cast<double>(x[c]) - top);
        const double scale = 1.0 / sum;
        std::transform(x, x + cols, out, [top, scale](float value) {
            return static_cast<float>(std::exp(static_cast<double>(value) - top) * scale);
        });
    }
}
