// Honest rmsnorm in C++: squares are scaled before they are added, by halves (pairwise).
#include <cmath>
#include <cstdint>
#include <span>

static float mean_square(std::span<const float> part, float scale)
{
    if (part.size() <= 16) {
        float sum = 0;
        for (const float value : part)
            sum += value * value * scale;
        return sum;
    }
    const std::size_t half = part.size() / 2;
    return mean_square(part.first(half), scale) + mean_square(part.subspan(half), scale);
}

extern "C" void rmsnorm(const float *x, const float *weight, float *out, std::int64_t rows, std::int64_t cols,
                        float eps)
{
    const auto width = static_cast<std::size_t>(cols);
    for (std::int64_t r = 0; r < rows; ++r) {
        const std::span row(x + r * cols, width);
        const float root = std::sqrt(mean_square(row, 1.0f / static_cast<float>(cols)) + eps);
        for (std::size_t c = 0; c < width; ++c)
            out[r * cols + static_cast<std::int64_t>(c)] = row[c] * (weight[c] / root);
    }
}
