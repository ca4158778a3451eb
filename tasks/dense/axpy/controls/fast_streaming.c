// Fast axpy: streaming stores, so that lines of `out` are written without being read first.
#include <stdint.h>
#include <string.h>

typedef float v8 __attribute__((vector_size(32)));

static inline v8 load(const float *from)
{
    v8 lanes;
    memcpy(&lanes, from, sizeof lanes);
    return lanes;
}

static inline void stream(float *to, v8 lanes)
{
#ifdef __AVX__
    __builtin_ia32_movntps256(to, lanes);
#else
    memcpy(to, &lanes, sizeof lanes);
#endif
}

void axpy(const float *x, const float *y, float *out, int64_t n, float a)
{
    int64_t i = 0;
    for (; i + 32 <= n; i += 32)
        for (int64_t part = 0; part < 32; part += 8)
            stream(out + i + part, a * load(x + i + part) + load(y + i + part));
    for (; i < n; i++)
        out[i] = a * x[i] + y[i];
#ifdef __AVX__
    __builtin_ia32_sfence();
#endif
}
