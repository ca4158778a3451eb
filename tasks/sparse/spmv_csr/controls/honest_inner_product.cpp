// Honest spmv_csr: std::transform_reduce over a row, double precision inside.
#include <cstdint>
#include <functional>
#include <numeric>

extern "C" void spmv_csr(const std::int64_t *row_ptr, const std::int32_t *col_idx, const float *values,
                         const float *x, float *y, std::int64_t rows, std::int64_t, std::int64_t)
{
    for (std::int64_t r = 0; r < rows; ++r)
        y[r] = static_cast<float>(std::transform_reduce(
            values + row_ptr[r], values + row_ptr[r + 1], col_idx + row_ptr[r], 0.0, std::plus<>{},
            [x](float value, std::int32_t column) { return static_cast<double>(value) * x[column]; }));
}
