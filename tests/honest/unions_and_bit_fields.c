/* kernel: axpy
   outcome: solved

   Floats taken apart and put together: bit-fields, an anonymous union, memcpy between types. */
#include <stdint.h>
#include <string.h>

typedef union {
  float value;
  struct { uint32_t mantissa : 23, exponent : 8, sign : 1; };
} parts_t;

static float negated(float value) {
  parts_t parts = {.value = value};
  parts.sign = !parts.sign;
  return parts.value;
}

static float magnitude_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  bits &= 0x7fffffffu;
  memcpy(&value, &bits, sizeof value);
  return value;
}

void axpy(const float *x, const float *y, float *out, int64_t n, float a) {
  for (int64_t i = 0; i < n; i++) {
    float positive = magnitude_of(x[i]);
    out[i] = a * (x[i] == positive ? positive : negated(positive)) + y[i];
  }
}
