/* HIP's older bfloat16, which has no intrinsics: it is made from a float on demand alone, and computed with as one. */
#ifndef KC_HIP_BFLOAT16_H
#define KC_HIP_BFLOAT16_H
#include "hip_bf16.h"

KC_BOTH_SIDES_BEGIN
struct hip_bfloat16 {
  unsigned short data;

  hip_bfloat16() = default;
  explicit hip_bfloat16(float x) : data(kc::to_bfloat16(x)) {}
  static hip_bfloat16 round_to_bfloat16(float x) { return hip_bfloat16(x); }
  operator float() const { return kc::from_bfloat16(data); }
  explicit operator bool() const { return static_cast<float>(*this) != 0; }
};

KC_SMALL_OPERATORS(hip_bfloat16)
KC_BOTH_SIDES_END
#endif
