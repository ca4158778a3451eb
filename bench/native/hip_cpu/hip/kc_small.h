/* What the 16-bit floating-point types have in common: all is computed wider, and rounded after each step.

   The headers of these types are the emulator's, and the offline kit's for AMD's GPUs. */
#ifndef KC_SMALL_H
#define KC_SMALL_H
#include "hip_runtime.h"

#ifdef KC_EMULATED
#define KC_BOTH_SIDES_BEGIN
#define KC_BOTH_SIDES_END
#else
#include "kc_device.h"
#endif

KC_BOTH_SIDES_BEGIN
namespace kc {
template <class S> bool is_nan(S a) { return static_cast<float>(a) != static_cast<float>(a); }
/* The smaller and the larger of two; of a number and a NaN, the number. */
template <class S> S smaller(S a, S b) { return static_cast<float>(b) < static_cast<float>(a) || is_nan(a) ? b : a; }
template <class S> S larger(S a, S b) { return static_cast<float>(a) < static_cast<float>(b) || is_nan(a) ? b : a; }
}  // namespace kc
KC_BOTH_SIDES_END

#define KC_SMALL_OPERATOR(S, op)                                                                                  \
  static inline S operator op(S a, S b) { return S(static_cast<float>(a) op static_cast<float>(b)); }             \
  static inline S &operator op##=(S &a, S b) { return a = a op b; }
#define KC_SMALL_COMPARISON(S, op) \
  static inline bool operator op(S a, S b) { return static_cast<float>(a) op static_cast<float>(b); }

/* The operators of a type S. */
#define KC_SMALL_OPERATORS(S)                                                 \
  KC_SMALL_OPERATOR(S, +)                                                     \
  KC_SMALL_OPERATOR(S, -)                                                     \
  KC_SMALL_OPERATOR(S, *)                                                     \
  KC_SMALL_OPERATOR(S, /)                                                     \
  KC_SMALL_COMPARISON(S, ==)                                                  \
  KC_SMALL_COMPARISON(S, !=)                                                  \
  KC_SMALL_COMPARISON(S, <)                                                   \
  KC_SMALL_COMPARISON(S, <=)                                                  \
  KC_SMALL_COMPARISON(S, >)                                                   \
  KC_SMALL_COMPARISON(S, >=)                                                  \
  static inline S operator+(S a) { return a; }                                \
  static inline S operator-(S a) { return S(-static_cast<float>(a)); }        \
  static inline S &operator++(S &a) { return a += S(1.0f); }                  \
  static inline S &operator--(S &a) { return a -= S(1.0f); }                  \
  static inline S operator++(S &a, int) {                                     \
    S before = a;                                                             \
    ++a;                                                                      \
    return before;                                                            \
  }                                                                           \
  static inline S operator--(S &a, int) {                                     \
    S before = a;                                                             \
    --a;                                                                      \
    return before;                                                            \
  }

/* A function of one or of two operands, and the same of a pair of each. */
#define KC_SMALL_UNARY(S, P, name, pair_name, expression)             \
  static inline S name(S a) { return expression; }                    \
  static inline P pair_name(P a) { return {name(a.x), name(a.y)}; }
#define KC_SMALL_BINARY(S, P, name, pair_name, expression)                           \
  static inline S name(S a, S b) { return expression; }                              \
  static inline P pair_name(P a, P b) { return {name(a.x, b.x), name(a.y, b.y)}; }
/* A comparison, its form that is true of a NaN, and what both are of pairs: of each member, or of all. */
#define KC_SMALL_COMPARED(S, P, name, op)                                                                          \
  static inline bool __h##name(S a, S b) { return a op b; }                                                        \
  static inline bool __h##name##u(S a, S b) { return a op b || kc::is_nan(a) || kc::is_nan(b); }                   \
  static inline P __h##name##2(P a, P b) { return {S(a.x op b.x ? 1.0f : 0.0f), S(a.y op b.y ? 1.0f : 0.0f)}; }    \
  static inline bool __hb##name##2(P a, P b) { return a.x op b.x && a.y op b.y; }

/* The intrinsics of a type S and of its pair P; a multiply-add is computed as type WIDE. */
#define KC_SMALL_INTRINSICS(S, P, WIDE)                                                        \
  KC_SMALL_BINARY(S, P, __hadd, __hadd2, a + b)                                                \
  KC_SMALL_BINARY(S, P, __hsub, __hsub2, a - b)                                                \
  KC_SMALL_BINARY(S, P, __hmul, __hmul2, a *b)                                                 \
  KC_SMALL_BINARY(S, P, __hdiv, __h2div, a / b)                                                \
  KC_SMALL_BINARY(S, P, __hmin, __hmin2, kc::smaller(a, b))                                    \
  KC_SMALL_BINARY(S, P, __hmax, __hmax2, kc::larger(a, b))                                     \
  KC_SMALL_UNARY(S, P, __hneg, __hneg2, -a)                                                    \
  KC_SMALL_UNARY(S, P, __habs, __habs2, S(fabsf(static_cast<float>(a))))                       \
  static inline S __hfma(S a, S b, S c) {                                                      \
    return S(std::fma(static_cast<WIDE>(a), static_cast<WIDE>(b), static_cast<WIDE>(c)));      \
  }                                                                                            \
  static inline P __hfma2(P a, P b, P c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; } \
  KC_SMALL_COMPARED(S, P, eq, ==)                                                              \
  KC_SMALL_COMPARED(S, P, ne, !=)                                                              \
  KC_SMALL_COMPARED(S, P, lt, <)                                                               \
  KC_SMALL_COMPARED(S, P, le, <=)                                                              \
  KC_SMALL_COMPARED(S, P, gt, >)                                                               \
  KC_SMALL_COMPARED(S, P, ge, >=)                                                              \
  static inline bool __hisnan(S a) { return kc::is_nan(a); }                                   \
  static inline int __hisinf(S a) { return std::isinf(static_cast<float>(a)); }                \
  KC_SMALL_UNARY(S, P, hexp, h2exp, S(expf(static_cast<float>(a))))                            \
  KC_SMALL_UNARY(S, P, hexp2, h2exp2, S(exp2f(static_cast<float>(a))))                         \
  KC_SMALL_UNARY(S, P, hexp10, h2exp10, S(exp10f(static_cast<float>(a))))                      \
  KC_SMALL_UNARY(S, P, hlog, h2log, S(logf(static_cast<float>(a))))                            \
  KC_SMALL_UNARY(S, P, hlog2, h2log2, S(log2f(static_cast<float>(a))))                         \
  KC_SMALL_UNARY(S, P, hlog10, h2log10, S(log10f(static_cast<float>(a))))                      \
  KC_SMALL_UNARY(S, P, hsqrt, h2sqrt, S(sqrtf(static_cast<float>(a))))                         \
  KC_SMALL_UNARY(S, P, hrsqrt, h2rsqrt, S(1 / sqrtf(static_cast<float>(a))))                   \
  KC_SMALL_UNARY(S, P, hrcp, h2rcp, S(1 / static_cast<float>(a)))                              \
  KC_SMALL_UNARY(S, P, hsin, h2sin, S(sinf(static_cast<float>(a))))                            \
  KC_SMALL_UNARY(S, P, hcos, h2cos, S(cosf(static_cast<float>(a))))                            \
  KC_SMALL_UNARY(S, P, hfloor, h2floor, S(floorf(static_cast<float>(a))))                      \
  KC_SMALL_UNARY(S, P, hceil, h2ceil, S(ceilf(static_cast<float>(a))))                         \
  KC_SMALL_UNARY(S, P, htrunc, h2trunc, S(truncf(static_cast<float>(a))))                      \
  KC_SMALL_UNARY(S, P, hrint, h2rint, S(nearbyintf(static_cast<float>(a))))                    \
  static inline P unsafeAtomicAdd(P *address, P value) {                                       \
    return kc::exchange_for(address, [value](P before) { return before + value; });            \
  }                                                                                            \
  static inline P atomicAdd(P *address, P value) { return unsafeAtomicAdd(address, value); }

#define KC_PAIR_OPERATOR(P, op)                                                          \
  static inline P operator op(P a, P b) { return {a.x op b.x, a.y op b.y}; }             \
  static inline P &operator op##=(P &a, P b) { return a = a op b; }
#define KC_PAIR_OPERATORS(P)                                                             \
  KC_PAIR_OPERATOR(P, +)                                                                 \
  KC_PAIR_OPERATOR(P, -)                                                                 \
  KC_PAIR_OPERATOR(P, *)                                                                 \
  KC_PAIR_OPERATOR(P, /)                                                                 \
  static inline P operator-(P a) { return {-a.x, -a.y}; }                                \
  static inline bool operator==(P a, P b) { return a.x == b.x && a.y == b.y; }
#endif
