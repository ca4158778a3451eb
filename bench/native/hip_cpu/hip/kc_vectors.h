/* HIP's vector types, float4 and the like, and dim3. */
#ifndef KC_VECTORS_H
#define KC_VECTORS_H
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace kc {

/* The members of a vector, and how something is done to each. */
template <class T, unsigned N> struct Members;

template <class T> struct Members<T, 1> {
  T x;
  static constexpr Members filled(T v) { return {v}; }
  template <class F> constexpr void each(const Members &o, F f) { f(x, o.x); }
  constexpr bool equals(const Members &o) const { return x == o.x; }
};

template <class T> struct Members<T, 2> {
  T x, y;
  static constexpr Members filled(T v) { return {v, v}; }
  template <class F> constexpr void each(const Members &o, F f) { f(x, o.x), f(y, o.y); }
  constexpr bool equals(const Members &o) const { return x == o.x && y == o.y; }
};

template <class T> struct Members<T, 3> {
  T x, y, z;
  static constexpr Members filled(T v) { return {v, v, v}; }
  template <class F> constexpr void each(const Members &o, F f) { f(x, o.x), f(y, o.y), f(z, o.z); }
  constexpr bool equals(const Members &o) const { return x == o.x && y == o.y && z == o.z; }
};

template <class T> struct Members<T, 4> {
  T x, y, z, w;
  static constexpr Members filled(T v) { return {v, v, v, v}; }
  template <class F> constexpr void each(const Members &o, F f) { f(x, o.x), f(y, o.y), f(z, o.z), f(w, o.w); }
  constexpr bool equals(const Members &o) const { return x == o.x && y == o.y && z == o.z && w == o.w; }
};

/* Two and four of a type are loaded at once, and so are aligned as a whole; three are not. */
template <class T, unsigned N> constexpr std::size_t alignment = N == 3 ? alignof(T) : N * sizeof(T);

}  // namespace kc

template <class T, unsigned N> struct alignas(kc::alignment<T, N>) HIP_vector_type : kc::Members<T, N> {
  using value_type = T;

  HIP_vector_type() = default;
  template <class U>
    requires std::is_convertible_v<U, T>
  explicit constexpr HIP_vector_type(U v) : kc::Members<T, N>(kc::Members<T, N>::filled(static_cast<T>(v))) {}
  template <class... U>
    requires(N > 1 && sizeof...(U) == N && (std::is_convertible_v<U, T> && ...))
  constexpr HIP_vector_type(U... v) : kc::Members<T, N>{static_cast<T>(v)...} {}

  constexpr HIP_vector_type operator-() const { return with([](T &a, const T &b) { a = static_cast<T>(-b); }); }
  constexpr HIP_vector_type operator~() const
    requires std::is_integral_v<T>
  {
    return with([](T &a, const T &b) { a = static_cast<T>(~b); });
  }
  constexpr HIP_vector_type &operator++() { return *this += T(1); }
  constexpr HIP_vector_type &operator--() { return *this -= T(1); }
  constexpr HIP_vector_type operator++(int) { return ++*this - T(1); }
  constexpr HIP_vector_type operator--(int) { return --*this + T(1); }

  template <class F> constexpr HIP_vector_type with(F f) const {
    HIP_vector_type changed = *this;
    changed.each(*this, f);
    return changed;
  }
};

/* Templates of no class: so a source's own operator for float4 comes before them. */
#define KC_OPERATOR(op, condition)                                                                     \
  template <class T, unsigned N>                                                                       \
    requires(condition)                                                                                \
  constexpr HIP_vector_type<T, N> &operator op##=(HIP_vector_type<T, N> &a, const HIP_vector_type<T, N> &b) { \
    a.each(b, [](T & left, const T &right) { left = static_cast<T>(left op right); });                 \
    return a;                                                                                          \
  }                                                                                                    \
  template <class T, unsigned N, class U>                                                              \
    requires(condition && std::is_convertible_v<U, T>)                                                 \
  constexpr HIP_vector_type<T, N> &operator op##=(HIP_vector_type<T, N> &a, U b) {                     \
    return a op##= HIP_vector_type<T, N>(b);                                                           \
  }                                                                                                    \
  template <class T, unsigned N>                                                                       \
    requires(condition)                                                                                \
  constexpr HIP_vector_type<T, N> operator op(HIP_vector_type<T, N> a, const HIP_vector_type<T, N> &b) { \
    return a op##= b;                                                                                  \
  }                                                                                                    \
  template <class T, unsigned N, class U>                                                              \
    requires(condition && std::is_convertible_v<U, T>)                                                 \
  constexpr HIP_vector_type<T, N> operator op(HIP_vector_type<T, N> a, U b) {                          \
    return a op##= HIP_vector_type<T, N>(b);                                                           \
  }                                                                                                    \
  template <class T, unsigned N, class U>                                                              \
    requires(condition && std::is_convertible_v<U, T>)                                                 \
  constexpr HIP_vector_type<T, N> operator op(U a, const HIP_vector_type<T, N> &b) {                   \
    return HIP_vector_type<T, N>(a) op b;                                                              \
  }

KC_OPERATOR(+, true)
KC_OPERATOR(-, true)
KC_OPERATOR(*, true)
KC_OPERATOR(/, true)
KC_OPERATOR(%, std::is_integral_v<T>)
KC_OPERATOR(&, std::is_integral_v<T>)
KC_OPERATOR(|, std::is_integral_v<T>)
KC_OPERATOR(^, std::is_integral_v<T>)
KC_OPERATOR(<<, std::is_integral_v<T>)
KC_OPERATOR(>>, std::is_integral_v<T>)
#undef KC_OPERATOR

template <class T, unsigned N>
constexpr bool operator==(const HIP_vector_type<T, N> &a, const HIP_vector_type<T, N> &b) {
  return a.equals(b);
}
template <class T, unsigned N, class U>
  requires std::is_convertible_v<U, T>
constexpr bool operator==(const HIP_vector_type<T, N> &a, U b) {
  return a == HIP_vector_type<T, N>(b);
}

#define KC_VECTORS(name, T)                                                                       \
  using name##1 = HIP_vector_type<T, 1>;                                                          \
  using name##2 = HIP_vector_type<T, 2>;                                                          \
  using name##3 = HIP_vector_type<T, 3>;                                                          \
  using name##4 = HIP_vector_type<T, 4>;                                                          \
  static constexpr inline name##1 make_##name##1(T x) { return name##1(x); }                      \
  static constexpr inline name##2 make_##name##2(T x, T y) { return name##2(x, y); }              \
  static constexpr inline name##3 make_##name##3(T x, T y, T z) { return name##3(x, y, z); }      \
  static constexpr inline name##4 make_##name##4(T x, T y, T z, T w) { return name##4(x, y, z, w); }

KC_VECTORS(char, char)
KC_VECTORS(uchar, unsigned char)
KC_VECTORS(short, short)
KC_VECTORS(ushort, unsigned short)
KC_VECTORS(int, int)
KC_VECTORS(uint, unsigned)
KC_VECTORS(long, long)
KC_VECTORS(ulong, unsigned long)
KC_VECTORS(longlong, long long)
KC_VECTORS(ulonglong, unsigned long long)
KC_VECTORS(float, float)
KC_VECTORS(double, double)
#undef KC_VECTORS

struct dim3 {
  std::uint32_t x, y, z;
  constexpr dim3(std::uint32_t x = 1, std::uint32_t y = 1, std::uint32_t z = 1) : x(x), y(y), z(z) {}
  constexpr dim3(const uint3 &v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return uint3(x, y, z); }
  constexpr bool operator==(const dim3 &) const = default;
};
#endif
