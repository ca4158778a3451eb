// Honest nbody in C++: the sources run outside and act on all bodies.
#include <cmath>
#include <cstdint>

namespace {
struct Vector {
    float x, y, z;
    Vector operator-(const Vector &other) const { return {x - other.x, y - other.y, z - other.z}; }
    float square() const { return x * x + y * y + z * z; }
};
} // namespace

extern "C" void nbody(const float *x, const float *y, const float *z, const float *mass, float *ax, float *ay,
                      float *az, std::int64_t n, float soft)
{
    for (std::int64_t i = 0; i < n; ++i)
        ax[i] = ay[i] = az[i] = 0.0f;
    const float softening = std::fma(soft, soft, 1.0f / 1024.0f);
    for (std::int64_t j = 0; j < n; ++j) {
        const Vector source{x[j], y[j], z[j]};
        for (std::int64_t i = 0; i < n; ++i) {
            const Vector d = source - Vector{x[i], y[i], z[i]};
            const float square = d.square() + softening;
            const float pull = mass[j] / square / std::sqrt(square);
            ax[i] += d.x * pull;
            ay[i] += d.y * pull;
            az[i] += d.z * pull;
        }
    }
}
