// Honest argmax_rows in C++: max_element returns the first of equal maxima.
#include <algorithm>
#include <cstdint>

extern "C" void argmax_rows(const float *x, std::int32_t *out, std::int64_t rows, std::int64_t cols)
{
    for (std::int64_t r = 0; r < rows; ++r) {
        const float *row = x + r * cols;
        out[r] = static_cast<std::int32_t>(std::max_element(row, row + cols) - row);
    }
}
