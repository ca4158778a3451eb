// Fast logsumexp_rows: sixteen lanes at a time, exp by a polynomial of degree 7.
#include <math.h>
#include <stdint.h>
#include <string.h>

typedef float v8 __attribute__((vector_size(32)));
typedef int32_t i8 __attribute__((vector_size(32)));

static inline v8 load(const float *from)
{
    v8 lanes;
    memcpy(&lanes, from, sizeof lanes);
    return lanes;
}

static inline v8 larger(v8 a, v8 b)
{
    const i8 first = a > b; // all ones where a is larger
    return (v8)((first & (i8)a) | (~first & (i8)b));
}

// exp(d) for d <= 0; what is smaller than exp(-87) does not show in a sum that holds exp(0).
static inline v8 exponential(v8 d)
{
    d = larger(d, (v8){} - 87.0f);
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
    return poly * (v8)((power + 127) << 23);
}

static float row_max(const float *in, int64_t cols)
{
    float top = in[0];
    int64_t c = 0;
    if (cols >= 16) {
        v8 most[2] = {load(in), load(in + 8)};
        for (c = 16; c + 16 <= cols; c += 16)
            for (int part = 0; part < 2; part++)
                most[part] = larger(load(in + c + 8 * part), most[part]);
        most[0] = larger(most[0], most[1]);
        for (int lane = 0; lane < 8; lane++)
            top = most[0][lane] > top ? most[0][lane] : top;
    }
    for (; c < cols; c++)
        top = in[c] > top ? in[c] : top;
    return top;
}

static float row_sum(const float *in, float top, int64_t cols)
{
    v8 sum[2] = {};
    int64_t c = 0;
    for (; c + 16 <= cols; c += 16)
        for (int part = 0; part < 2; part++)
            sum[part] += exponential(load(in + c + 8 * part) - top);
    sum[0] += sum[1];
    float total = 0.0f;
    for (int lane = 0; lane < 8; lane++)
        total += sum[0][lane];
    for (; c < cols; c++)
        total += expf(in[c] - top);
    return total;
}

void logsumexp_rows(const float *x, float *out, int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++) {
        const float *in = x + r * cols;
        const float top = row_max(in, cols);
        out[r] = top + logf(row_sum(in, top, cols));
    }
}
