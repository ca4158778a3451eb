// Fast softmax_rows: eight lanes at a time, exp by a polynomial of degree 7 with gradual underflow.
#include <cstdint>
#include <cstring>

namespace {

typedef float v8 __attribute__((vector_size(32)));
typedef std::int32_t i8 __attribute__((vector_size(32)));

inline void load(v8 &to, const float *from)
{
    std::memcpy(&to, from, sizeof to);
}

inline void store(float *to, const v8 &from)
{
    std::memcpy(to, &from, sizeof from);
}

inline void keep_larger(v8 &top, const v8 &other)
{
    top = other > top ? other : top;
}

// d becomes exp(d), for d <= 0; below -110 the result is zero in single precision.
inline void exponentiate(v8 &d)
{
    const v8 lowest = v8{} - 110.0f;
    d = d < lowest ? lowest : d;
    const v8 shifted = d * 1.44269504f + 12582912.0f; // adding 1.5 * 2^23 rounds to an integer
    const v8 whole = shifted - 12582912.0f;
    v8 rest = d - whole * 0.693145751953125f; // ln 2 in two parts, the first with few bits
    rest -= whole * 1.42860677e-6f;
    v8 poly = rest * (1.0f / 5040.0f) + 1.0f / 720.0f;
    poly = poly * rest + 1.0f / 120.0f;
    poly = poly * rest + 1.0f / 24.0f;
    poly = poly * rest + 1.0f / 6.0f;
    poly = poly * rest + 0.5f;
    poly = poly * rest + 1.0f;
    poly = poly * rest + 1.0f;
    const i8 power = (i8)shifted - 0x4B400000;
    const i8 half = power >> 1; // two factors, so that results below 2^-126 round like any other
    d = poly * (v8)((half + 127) << 23) * (v8)((power - half + 127) << 23);
}

float row_max(const float *in, std::int64_t cols)
{
    float top = in[0];
    std::int64_t c = 0;
    if (cols >= 32) {
        v8 most[4], next;
        for (int part = 0; part < 4; part++)
            load(most[part], in + 8 * part);
        for (c = 32; c + 32 <= cols; c += 32)
            for (int part = 0; part < 4; part++) {
                load(next, in + c + 8 * part);
                keep_larger(most[part], next);
            }
        for (int part = 1; part < 4; part++)
            keep_larger(most[0], most[part]);
        for (int lane = 0; lane < 8; lane++)
            top = most[0][lane] > top ? most[0][lane] : top;
    }
    for (; c < cols; c++)
        top = in[c] > top ? in[c] : top;
    return top;
}

void softmax(const float *in, float *to, std::int64_t cols)
{
    const float top = row_max(in, cols);
    v8 sum[2] = {}, value;
    std::int64_t c = 0;
    for (; c + 16 <= cols; c += 16)
        for (int part = 0; part < 2; part++) {
            load(value, in + c + 8 * part);
            value -= top;
            exponentiate(value);
            store(to + c + 8 * part, value);
            sum[part] += value;
        }
    for (; c < cols; c += 8) {
        const std::int64_t left = cols - c < 8 ? cols - c : 8;
        value = v8{} - 1000.0f;
        for (std::int64_t lane = 0; lane < left; lane++)
            value[lane] = in[c + lane] - top;
        exponentiate(value);
        for (std::int64_t lane = 0; lane < left; lane++)
            to[c + lane] = value[lane];
        sum[0] += value;
    }
    sum[0] += sum[1];
    float total = 0.0f;
    for (int lane = 0; lane < 8; lane++)
        total += sum[0][lane];
    const float scale = 1.0f / total;
    for (c = 0; c < cols; c++)
        to[c] *= scale;
}

} // namespace

extern "C" void softmax_rows(const float *x, float *out, std::int64_t rows, std::int64_t cols)
{
    for (std::int64_t r = 0; r < rows; r++)
        softmax(x + r * cols, out + r * cols, cols);
}
