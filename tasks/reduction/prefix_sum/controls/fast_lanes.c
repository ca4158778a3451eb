/* Fast prefix_sum: scans eight lanes in a register by shifts, four registers at a time, with a carried offset. */
#include <stdint.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif

typedef float v8 __attribute__((vector_size(32)));
typedef int32_t i8 __attribute__((vector_size(32)));

/* v[i] += v[i - 1] + ... + v[0] */
#define SCAN(v)                                                                    \
    do {                                                                           \
        (v) += __builtin_shuffle((v), zero, (i8){8, 0, 1, 2, 3, 4, 5, 6});         \
        (v) += __builtin_shuffle((v), zero, (i8){8, 8, 0, 1, 2, 3, 4, 5});         \
        (v) += __builtin_shuffle((v), zero, (i8){8, 8, 8, 8, 0, 1, 2, 3});         \
    } while (0)
#define LAST(v) __builtin_shuffle((v), (i8){7, 7, 7, 7, 7, 7, 7, 7})

#ifdef __AVX2__
#define PUT(to, value) _mm256_stream_ps((to), (__m256)(value))
#else
#define PUT(to, value) (*(v8 *)(to) = (value))
#endif

void prefix_sum(const float *restrict x, float *restrict out, int64_t n)
{
    v8 zero = {}, carry = {};
    int64_t i = 0;
    for (; i + 32 <= n; i += 32) {
        v8 a = *(const v8 *)(x + i), b = *(const v8 *)(x + i + 8);
        v8 c = *(const v8 *)(x + i + 16), d = *(const v8 *)(x + i + 24);
        SCAN(a);
        SCAN(b);
        SCAN(c);
        SCAN(d);
        v8 ends_a = LAST(a), ends_b = ends_a + LAST(b);
        v8 ends_c = ends_b + LAST(c), ends_d = ends_c + LAST(d);
        PUT(out + i, a + carry);
        PUT(out + i + 8, b + (ends_a + carry));
        PUT(out + i + 16, c + (ends_b + carry));
        PUT(out + i + 24, d + (ends_c + carry));
        carry += ends_d;
    }
#ifdef __AVX2__
    _mm_sfence();
#endif
    float sum = carry[0];
    for (; i < n; i++)
        out[i] = sum += x[i];
}
