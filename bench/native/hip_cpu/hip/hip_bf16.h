/* HIP's bfloat16: the upper half of a float, rounded to the nearest. */
#ifndef KC_HIP_BF16_H
#define KC_HIP_BF16_H
#include "kc_small.h"

KC_BOTH_SIDES_BEGIN
namespace kc {
/* To nearest, ties to even; a NaN stays one, for its payload may lie in what is cut off. */
static inline unsigned short to_bfloat16(float x) {
  unsigned bits = __float_as_uint(x);
  if (x != x) return static_cast<unsigned short>(bits >> 16 | 0x40);
  return static_cast<unsigned short>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
static inline float from_bfloat16(unsigned short x) { return __uint_as_float(static_cast<unsigned>(x) << 16); }
}  // namespace kc

struct __hip_bfloat16 {
  unsigned short data;

  __hip_bfloat16() = default;
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  __hip_bfloat16(T x) : data(kc::to_bfloat16(static_cast<float>(x))) {}
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  operator T() const {
    return static_cast<T>(kc::from_bfloat16(data));
  }
};

struct alignas(4) __hip_bfloat162 {
  __hip_bfloat16 x, y;
  __hip_bfloat162() = default;
  __hip_bfloat162(__hip_bfloat16 x, __hip_bfloat16 y) : x(x), y(y) {}
  operator float2() const { return float2(static_cast<float>(x), static_cast<float>(y)); }
};

KC_SMALL_OPERATORS(__hip_bfloat16)
KC_PAIR_OPERATORS(__hip_bfloat162)
KC_SMALL_INTRINSICS(__hip_bfloat16, __hip_bfloat162, float)

static inline __hip_bfloat16 __float2bfloat16(float x) { return x; }
static inline __hip_bfloat16 __float2bfloat16_rn(float x) { return x; }
static inline __hip_bfloat16 __double2bfloat16(double x) { return x; }
static inline float __bfloat162float(__hip_bfloat16 x) { return x; }
static inline unsigned short __bfloat16_as_ushort(__hip_bfloat16 x) { return x.data; }
static inline short __bfloat16_as_short(__hip_bfloat16 x) { return static_cast<short>(x.data); }
static inline __hip_bfloat16 __ushort_as_bfloat16(unsigned short x) { return kc::bits_as<__hip_bfloat16>(x); }
static inline __hip_bfloat16 __short_as_bfloat16(short x) { return kc::bits_as<__hip_bfloat16>(x); }
static inline __hip_bfloat16 __int2bfloat16_rn(int x) { return x; }
static inline int __bfloat162int_rn(__hip_bfloat16 x) { return __float2int_rn(x); }
static inline int __bfloat162int_rz(__hip_bfloat16 x) { return __float2int_rz(x); }

static inline __hip_bfloat162 make_bfloat162(__hip_bfloat16 x, __hip_bfloat16 y) { return {x, y}; }
static inline __hip_bfloat162 __halves2bfloat162(__hip_bfloat16 x, __hip_bfloat16 y) { return {x, y}; }
static inline __hip_bfloat162 __bfloat162bfloat162(__hip_bfloat16 x) { return {x, x}; }
static inline __hip_bfloat162 __float2bfloat162_rn(float x) { return {x, x}; }
static inline __hip_bfloat162 __floats2bfloat162_rn(float x, float y) { return {x, y}; }
static inline __hip_bfloat162 __float22bfloat162_rn(float2 x) { return {x.x, x.y}; }
static inline float2 __bfloat1622float2(__hip_bfloat162 x) { return x; }
static inline __hip_bfloat16 __low2bfloat16(__hip_bfloat162 x) { return x.x; }
static inline __hip_bfloat16 __high2bfloat16(__hip_bfloat162 x) { return x.y; }
static inline float __low2float(__hip_bfloat162 x) { return x.x; }
static inline float __high2float(__hip_bfloat162 x) { return x.y; }
static inline __hip_bfloat162 __low2bfloat162(__hip_bfloat162 x) { return {x.x, x.x}; }
static inline __hip_bfloat162 __high2bfloat162(__hip_bfloat162 x) { return {x.y, x.y}; }
static inline __hip_bfloat162 __lows2bfloat162(__hip_bfloat162 x, __hip_bfloat162 y) { return {x.x, y.x}; }
static inline __hip_bfloat162 __highs2bfloat162(__hip_bfloat162 x, __hip_bfloat162 y) { return {x.y, y.y}; }
static inline __hip_bfloat162 __lowhigh2highlow(__hip_bfloat162 x) { return {x.y, x.x}; }
KC_BOTH_SIDES_END
#endif
