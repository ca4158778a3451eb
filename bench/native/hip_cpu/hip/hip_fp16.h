/* HIP's half-precision type, on top of the compiler's own. */
#ifndef KC_HIP_FP16_H
#define KC_HIP_FP16_H
#include "kc_small.h"

#ifndef __FLT16_MANT_DIG__
#error "this compiler has no _Float16; g++ has it from version 12 on"
#endif

KC_BOTH_SIDES_BEGIN
struct __half {
  _Float16 data;

  __half() = default;
  constexpr __half(_Float16 x) : data(x) {}
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  constexpr __half(T x) : data(static_cast<_Float16>(x)) {}
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  constexpr operator T() const {
    return static_cast<T>(static_cast<float>(data));
  }
  constexpr operator _Float16() const { return data; }
};
using half = __half;

struct alignas(4) __half2 {
  __half x, y;
  __half2() = default;
  constexpr __half2(__half x, __half y) : x(x), y(y) {}
};
using half2 = __half2;

KC_SMALL_OPERATORS(__half)
KC_PAIR_OPERATORS(__half2)
KC_SMALL_INTRINSICS(__half, __half2, double)

static inline unsigned short __half_as_ushort(__half x) { return kc::bits_as<unsigned short>(x); }
static inline short __half_as_short(__half x) { return kc::bits_as<short>(x); }
static inline __half __ushort_as_half(unsigned short x) { return kc::bits_as<__half>(x); }
static inline __half __short_as_half(short x) { return kc::bits_as<__half>(x); }

namespace kc {
/* The next half towards one of the infinities. */
static inline __half after(__half x, bool upwards) {
  unsigned short bits = __half_as_ushort(x), sign = 0x8000;
  bool negative = bits & sign;
  if (!(bits & 0x7fff)) return __ushort_as_half(upwards ? 1 : sign | 1);
  return __ushort_as_half(static_cast<unsigned short>(negative == upwards ? bits - 1 : bits + 1));
}
static inline __half rounded_down(float x) {
  __half nearest(x);
  return static_cast<float>(nearest) > x ? after(nearest, false) : nearest;
}
static inline __half rounded_up(float x) {
  __half nearest(x);
  return static_cast<float>(nearest) < x ? after(nearest, true) : nearest;
}
}  // namespace kc

static inline __half __float2half(float x) { return __half(x); }
static inline __half __float2half_rn(float x) { return __half(x); }
static inline __half __float2half_rd(float x) { return kc::rounded_down(x); }
static inline __half __float2half_ru(float x) { return kc::rounded_up(x); }
static inline __half __float2half_rz(float x) { return x < 0 ? kc::rounded_up(x) : kc::rounded_down(x); }
static inline __half __double2half(double x) { return __half(x); }
static inline float __half2float(__half x) { return x; }
static inline __half __int2half_rn(int x) { return __half(x); }
static inline __half __uint2half_rn(unsigned x) { return __half(x); }
static inline int __half2int_rn(__half x) { return __float2int_rn(x); }
static inline int __half2int_rz(__half x) { return __float2int_rz(x); }
static inline unsigned __half2uint_rn(__half x) { return __float2uint_rn(x); }
static inline unsigned __half2uint_rz(__half x) { return __float2uint_rz(x); }

static inline __half2 make_half2(__half x, __half y) { return {x, y}; }
static inline __half2 __halves2half2(__half x, __half y) { return {x, y}; }
static inline __half2 __half2half2(__half x) { return {x, x}; }
static inline __half2 __float2half2_rn(float x) { return {x, x}; }
static inline __half2 __floats2half2_rn(float x, float y) { return {x, y}; }
static inline __half2 __float22half2_rn(float2 x) { return {x.x, x.y}; }
static inline float2 __half22float2(__half2 x) { return float2(static_cast<float>(x.x), static_cast<float>(x.y)); }
static inline __half __low2half(__half2 x) { return x.x; }
static inline __half __high2half(__half2 x) { return x.y; }
static inline float __low2float(__half2 x) { return x.x; }
static inline float __high2float(__half2 x) { return x.y; }
static inline __half2 __low2half2(__half2 x) { return {x.x, x.x}; }
static inline __half2 __high2half2(__half2 x) { return {x.y, x.y}; }
static inline __half2 __lows2half2(__half2 x, __half2 y) { return {x.x, y.x}; }
static inline __half2 __highs2half2(__half2 x, __half2 y) { return {x.y, y.y}; }
static inline __half2 __lowhigh2highlow(__half2 x) { return {x.y, x.x}; }
KC_BOTH_SIDES_END
#endif
