// Honest jacobi2d: adds vertical and horizontal neighbours in pairs and divides by five.
#include <algorithm>
#include <cstdint>

extern "C" void jacobi2d(const float *x, float *out, std::int64_t rows, std::int64_t cols)
{
    for (std::int64_t r = 0; r < rows; ++r) {
        const float *row = x + r * cols;
        float *to = out + r * cols;
        std::copy(row, row + cols, to);
        if (r == 0 || r == rows - 1)
            continue;
        for (std::int64_t c = 1; c + 1 < cols; ++c)
            to[c] = (row[c] + ((row[c - cols] + row[c + cols]) + (row[c - 1] + row[c + 1]))) / 5.0f;
    }
}
