/* Device functions: mathematics beyond <cmath>, and what the hardware does with bits and conversions. */
#ifndef KC_MATHS_H
#define KC_MATHS_H
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <features.h>
#include <math.h>
#include <type_traits>

/* The fast forms. Names of the C library's own that it does not show: so no functions, but words for others. */
#define __expf expf
#define __exp10f exp10f
#define __exp2f exp2f
#define __logf logf
#define __log2f log2f
#define __log10f log10f
#define __sinf sinf
#define __cosf cosf
#define __tanf tanf
#define __sincosf sincosf
#define __powf powf

static inline float __fdividef(float x, float y) { return x / y; }
static inline float fdividef(float x, float y) { return x / y; }
static inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1) : 0; }

#define KC_ROUNDED(T, prefix, mul_add, root)                                                \
  static inline T __##prefix##add_rn(T x, T y) { return x + y; }                            \
  static inline T __##prefix##sub_rn(T x, T y) { return x - y; }                            \
  static inline T __##prefix##mul_rn(T x, T y) { return x * y; }                            \
  static inline T __##prefix##div_rn(T x, T y) { return x / y; }                            \
  static inline T __##prefix##rcp_rn(T x) { return 1 / x; }                                 \
  static inline T __##prefix##sqrt_rn(T x) { return root(x); }                              \
  static inline T mul_add(T x, T y, T z) { return std::fma(x, y, z); }
KC_ROUNDED(float, f, __fmaf_rn, sqrtf)
KC_ROUNDED(double, d, __fma_rn, sqrt)
#undef KC_ROUNDED
static inline float __frsqrt_rn(float x) { return 1 / sqrtf(x); }

/* What newer C libraries have under the same names. */
#if !__GLIBC_PREREQ(2, 41)
namespace kc {
/* The sine of pi times `x`, so many right angles ahead; exact where it is 0 or 1, for the angle itself is small. */
template <class T> T sine_of_pi(T x, long ahead) {
  T turned = std::fmod(x, T(2));
  long right_angles = std::lrint(2 * turned);
  double angle = 3.14159265358979323846 * static_cast<double>(turned - static_cast<T>(right_angles) / 2);
  switch ((right_angles + ahead) & 3) {
    case 0: return static_cast<T>(std::sin(angle));
    case 1: return static_cast<T>(std::cos(angle));
    case 2: return static_cast<T>(-std::sin(angle));
    default: return static_cast<T>(-std::cos(angle));
  }
}
}  // namespace kc
static inline float sinpif(float x) { return kc::sine_of_pi(x, 0); }
static inline double sinpi(double x) { return kc::sine_of_pi(x, 0); }
static inline float cospif(float x) { return kc::sine_of_pi(x, 1); }
static inline double cospi(double x) { return kc::sine_of_pi(x, 1); }
#endif
#if !__GLIBC_PREREQ(2, 42)
static inline float rsqrtf(float x) { return 1 / sqrtf(x); }
static inline double rsqrt(double x) { return 1 / sqrt(x); }
#endif
static inline float rsqrt(float x) { return 1 / sqrtf(x); }
static inline void sincospif(float x, float *sine, float *cosine) { *sine = sinpif(x), *cosine = cospif(x); }
static inline void sincospi(double x, double *sine, double *cosine) { *sine = sinpi(x), *cosine = cospi(x); }
static inline void sincos(float x, float *sine, float *cosine) { sincosf(x, sine, cosine); }

static inline float rcbrtf(float x) { return 1 / cbrtf(x); }
static inline double rcbrt(double x) { return 1 / cbrt(x); }
static inline float rhypotf(float x, float y) { return 1 / hypotf(x, y); }
static inline double rhypot(double x, double y) { return 1 / hypot(x, y); }
static inline float norm3df(float x, float y, float z) { return std::hypot(x, y, z); }
static inline double norm3d(double x, double y, double z) { return std::hypot(x, y, z); }
static inline float rnorm3df(float x, float y, float z) { return 1 / std::hypot(x, y, z); }
static inline double rnorm3d(double x, double y, double z) { return 1 / std::hypot(x, y, z); }
static inline double normcdf(double x) { return erfc(-x * 0.70710678118654752440) / 2; }
static inline float normcdff(float x) { return static_cast<float>(normcdf(x)); }
static inline double erfcx(double x) {
  if (x < 25) return exp(x * x) * erfc(x);
  /* One factor is about to leave the range of numbers; the series has reached their precision. */
  double squared = x * x, sum = 1;
  for (int k = 11; k > 0; k -= 2) sum = 1 - k * sum / (2 * squared);
  return 0.56418958354775628695 * sum / x;
}
static inline float erfcxf(float x) { return static_cast<float>(erfcx(x)); }

namespace kc {
template <class T, class U> concept Numbers = std::is_arithmetic_v<T> && std::is_arithmetic_v<U>;
}
/* Of two numbers; of a number and a NaN, the number. */
template <class T, class U>
  requires kc::Numbers<T, U>
constexpr std::common_type_t<T, U> min(T a, U b) {
  using Both = std::common_type_t<T, U>;
  return Both(b) < Both(a) || Both(a) != Both(a) ? Both(b) : Both(a);
}
template <class T, class U>
  requires kc::Numbers<T, U>
constexpr std::common_type_t<T, U> max(T a, U b) {
  using Both = std::common_type_t<T, U>;
  return Both(a) < Both(b) || Both(a) != Both(a) ? Both(b) : Both(a);
}

namespace kc {
template <class To, class From> inline To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}
}  // namespace kc
static inline int __float_as_int(float x) { return kc::bits_as<int>(x); }
static inline unsigned __float_as_uint(float x) { return kc::bits_as<unsigned>(x); }
static inline float __int_as_float(int x) { return kc::bits_as<float>(x); }
static inline float __uint_as_float(unsigned x) { return kc::bits_as<float>(x); }
static inline long long __double_as_longlong(double x) { return kc::bits_as<long long>(x); }
static inline double __longlong_as_double(long long x) { return kc::bits_as<double>(x); }
static inline int __double2hiint(double x) { return static_cast<int>(kc::bits_as<long long>(x) >> 32); }
static inline int __double2loint(double x) { return static_cast<int>(kc::bits_as<long long>(x)); }
static inline double __hiloint2double(int high, int low) {
  return kc::bits_as<double>(static_cast<long long>(high) << 32 | static_cast<unsigned>(low));
}

namespace kc {
/* To an integer as the hardware converts: what does not fit becomes the nearest that does, a NaN 0. */
template <class To, class From> inline To saturated(From x) {
  constexpr To least = std::is_signed_v<To> ? To(1) << (sizeof(To) * CHAR_BIT - 1) : 0, most = static_cast<To>(~least);
  if (x != x) return 0;
  if (x <= static_cast<From>(least)) return least;
  return x >= static_cast<From>(most) ? most : static_cast<To>(x);
}
}  // namespace kc
#define KC_CONVERSIONS(from, From, to, To)                                                          \
  static inline To __##from##2##to##_rn(From x) { return kc::saturated<To>(std::nearbyint(x)); }    \
  static inline To __##from##2##to##_rz(From x) { return kc::saturated<To>(std::trunc(x)); }        \
  static inline To __##from##2##to##_rd(From x) { return kc::saturated<To>(std::floor(x)); }        \
  static inline To __##from##2##to##_ru(From x) { return kc::saturated<To>(std::ceil(x)); }         \
  static inline From __##to##2##from##_rn(To x) { return static_cast<From>(x); }
KC_CONVERSIONS(float, float, int, int)
KC_CONVERSIONS(float, float, uint, unsigned)
KC_CONVERSIONS(float, float, ll, long long)
KC_CONVERSIONS(float, float, ull, unsigned long long)
KC_CONVERSIONS(double, double, int, int)
KC_CONVERSIONS(double, double, uint, unsigned)
KC_CONVERSIONS(double, double, ll, long long)
KC_CONVERSIONS(double, double, ull, unsigned long long)
#undef KC_CONVERSIONS
static inline float __double2float_rn(double x) { return static_cast<float>(x); }

static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64; }
/* A template, for a ballot is unsigned and a word may be signed. */
template <class T> inline int __ffs(T x) { return __builtin_ffsll(static_cast<long long>(x)); }
template <class T> inline int __ffsll(T x) { return __builtin_ffsll(static_cast<long long>(x)); }
static inline unsigned long long __brevll(unsigned long long x) {
  x = (x >> 1 & 0x5555555555555555) | (x & 0x5555555555555555) << 1;
  x = (x >> 2 & 0x3333333333333333) | (x & 0x3333333333333333) << 2;
  x = (x >> 4 & 0x0f0f0f0f0f0f0f0f) | (x & 0x0f0f0f0f0f0f0f0f) << 4;
  return __builtin_bswap64(x);
}
static inline unsigned __brev(unsigned x) { return static_cast<unsigned>(__brevll(x) >> 32); }
/* Each digit of the selector names one byte of the pair, `x` below `y`. */
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  std::uint64_t pair = static_cast<std::uint64_t>(y) << 32 | x;
  unsigned chosen = 0;
  for (unsigned i = 0; i < 4; i++) chosen |= static_cast<unsigned>(pair >> (selector >> 4 * i & 7) * 8 & 0xff) << 8 * i;
  return chosen;
}

static inline int __mul24(int x, int y) {
  return static_cast<int>(static_cast<long long>(x << 8 >> 8) * (y << 8 >> 8));
}
static inline unsigned __umul24(unsigned x, unsigned y) { return (x & 0xffffff) * (y & 0xffffff); }
static inline int __mulhi(int x, int y) { return static_cast<int>(static_cast<long long>(x) * y >> 32); }
static inline unsigned __umulhi(unsigned x, unsigned y) {
  return static_cast<unsigned>(static_cast<unsigned long long>(x) * y >> 32);
}
static inline long long __mul64hi(long long x, long long y) {
  return static_cast<long long>(static_cast<__int128>(x) * y >> 64);
}
static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(x) * y >> 64);
}
static inline unsigned __sad(int x, int y, unsigned z) {
  return z + static_cast<unsigned>(std::llabs(static_cast<long long>(x) - y));
}
static inline unsigned __usad(unsigned x, unsigned y, unsigned z) { return z + (x > y ? x - y : y - x); }
/* Means, rounded down or up. */
static inline int __hadd(int x, int y) { return static_cast<int>((static_cast<long long>(x) + y) >> 1); }
static inline int __rhadd(int x, int y) { return static_cast<int>((static_cast<long long>(x) + y + 1) >> 1); }
static inline unsigned __uhadd(unsigned x, unsigned y) {
  return static_cast<unsigned>((static_cast<unsigned long long>(x) + y) >> 1);
}
static inline unsigned __urhadd(unsigned x, unsigned y) {
  return static_cast<unsigned>((static_cast<unsigned long long>(x) + y + 1) >> 1);
}
/* A pair of words, shifted; the forms with a c shift by 32 at most, the others by what is left of 32. */
static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) << (shift & 31) >> 32);
}
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) >> (shift & 31));
}
static inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
  return shift < 32 ? __funnelshift_l(low, high, shift) : low;
}
static inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
  return shift < 32 ? __funnelshift_r(low, high, shift) : high;
}

template <class T> inline T __ldg(const T *address) { return *address; }
#define __builtin_assume(condition) ((void)0)
#endif
