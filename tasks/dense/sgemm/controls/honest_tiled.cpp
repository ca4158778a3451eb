// Honest sgemm: square tiles over all three loops, partial sums kept in C.
#include <algorithm>
#include <cstdint>

extern "C" void sgemm(const float *A, const float *B, float *C, std::int64_t m, std::int64_t n, std::int64_t k)
{
    constexpr std::int64_t tile = 32;
    std::fill(C, C + m * n, 0.0f);
    for (std::int64_t i0 = 0; i0 < m; i0 += tile)
        for (std::int64_t p0 = 0; p0 < k; p0 += tile)
            for (std::int64_t j0 = 0; j0 < n; j0 += tile) {
                const auto i1 = std::min(i0 + tile, m), p1 = std::min(p0 + tile, k), j1 = std::min(j0 + tile, n);
                for (auto i = i0; i < i1; ++i)
                    for (auto j = j0; j < j1; ++j) {
                        float sum = 0.0f;
                        for (auto p = p0; p < p1; ++p)
                            sum += A[i * k + p] * B[p * n + j];
                        C[i * n + j] += sum;
                    }
            }
}
