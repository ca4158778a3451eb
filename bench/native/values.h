/* One 64-bit word to one value, and when a value is close enough: the same on the CPU (helper.c) and on a GPU
   (judge.hip), bit for bit. */
#ifndef KC_VALUES_H
#define KC_VALUES_H
#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__HIPCC__) || defined(__CUDACC__)
#define KC_ANYWHERE __host__ __device__ static inline
#else
#define KC_ANYWHERE static inline
#endif

/* Philox4x64-10 (Salmon et al., SC 2011), with the word order of NumPy's `Philox(key=..., counter=0)`. */
KC_ANYWHERE void philox(uint64_t out[4], uint64_t block, uint64_t k0, uint64_t k1) {
  uint64_t c0 = block + 1, c1 = 0, c2 = 0, c3 = 0;
  for (int round = 0; round < 10; round++) {
    unsigned __int128 p0 = (unsigned __int128)0xD2E7470EE14C6C93ULL * c0;
    unsigned __int128 p1 = (unsigned __int128)0xCA5A826395121157ULL * c2;
    c0 = (uint64_t)(p1 >> 64) ^ c1 ^ k0;
    c1 = (uint64_t)p1;
    c2 = (uint64_t)(p0 >> 64) ^ c3 ^ k1;
    c3 = (uint64_t)p0;
    k0 += 0x9E3779B97F4A7C15ULL;
    k1 += 0xBB67AE8584CAA73BULL;
  }
  out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

/* Families: one 64-bit word to one value, through integers and powers of two only (bench/inputs.py has the same). */
KC_ANYWHERE double uniform(uint64_t w) { return (double)((int64_t)(w >> 40) - (1 << 23)) * 0x1p-23; }
KC_ANYWHERE double positive(uint64_t w) { return (double)((int64_t)(w >> 40) + 1) * 0x1p-24; }
KC_ANYWHERE double normal(uint64_t w) {
  int64_t sum = (int64_t)(w & 0xffff) + (int64_t)(w >> 16 & 0xffff) + (int64_t)(w >> 32 & 0xffff) + (int64_t)(w >> 48);
  return (double)(sum - 131070) * 0x1p-15;
}
KC_ANYWHERE double wide(uint64_t w) {
  uint64_t bits = (w & 1) << 63 | (uint64_t)(1023 - 20 + (int64_t)(w >> 1 & 31)) << 52 | (w >> 41) << 29;
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
KC_ANYWHERE double near_constant(uint64_t w) { return 1.0 + (double)((int64_t)(w >> 50) - (1 << 13)) * 0x1p-23; }
KC_ANYWHERE double spiked(uint64_t w) { return normal(w) * (w & 255 ? 1 : 256); }
KC_ANYWHERE double few(uint64_t w) { return (double)((int64_t)((w >> 32) * 9 >> 32) - 4) * 0.25; }
KC_ANYWHERE int64_t below(uint64_t w, uint64_t bound) { return (int64_t)((w >> 32) * bound >> 32); }
KC_ANYWHERE int64_t skewed(uint64_t w, uint64_t bound) { return below(w, bound) & (w & 3 ? 3 : -1); }

/* 16-bit floats as their bits: no compiler has both types everywhere. */
KC_ANYWHERE uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
KC_ANYWHERE float float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
enum { EXPONENT_FLOAT16 = 0x7c00 };

/* To the nearest, ties to even: half of the last place is added, less one unit where what stays is even. What families
   draw is finite, and far below the largest number of either type. */
KC_ANYWHERE uint16_t to_bfloat16(float x) {
  uint32_t bits = bits_of(x);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
KC_ANYWHERE float from_bfloat16(uint16_t x) { return float_of((uint32_t)x << 16); }

/* The same. Below 2^-14 a sum with 1/2 rounds: its last place, 2^-24, is that of the small numbers of float16. */
KC_ANYWHERE uint16_t to_float16(float x) {
  uint32_t sign = bits_of(x) >> 16 & 0x8000, bits = bits_of(fabsf(x));
  uint32_t small = bits_of(fabsf(x) + 0.5f) - bits_of(0.5f);
  uint32_t normal = (bits + 0xfff + (bits >> 13 & 1) - (112u << 23)) >> 13;
  return (uint16_t)(sign | (fabsf(x) < 0x1p-14f ? small : normal));
}
KC_ANYWHERE float from_float16(uint16_t x) {
  uint32_t bits = (uint32_t)(x & 0x7fff) << 13, sign = (uint32_t)(x & 0x8000) << 16;
  int is_finite = (x & EXPONENT_FLOAT16) != EXPONENT_FLOAT16;
  float size = is_finite ? float_of(bits) * 0x1p112f : float_of(bits | 0x7f800000);
  return float_of(bits_of(size) | sign);
}

/* Random bits that nobody can guess (key is secret) and that need not be reproduced: splitmix64 finaliser. */
KC_ANYWHERE uint64_t scramble(uint64_t x) {
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ x >> 27) * 0x94D049BB133111EBULL;
  return x ^ x >> 31;
}

/* One element: within its bound, or a NaN or an infinity where the oracle has the same. */
KC_ANYWHERE int element_ok(double g, double e, double bound, double limit) {
  if (isnan(e)) return isnan(g);
  if (fabs(e) > limit) return isinf(g) && signbit(g) == signbit(e);
  return fabs(g - e) <= bound;
}
#endif
