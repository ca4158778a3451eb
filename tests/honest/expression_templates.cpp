/* kernel: axpy
   outcome: solved

   Vectors whose sums and products are types until they are assigned; the parts share a base by its template. */
#include <cstdint>

template <class E>
struct Expression {
  float at(int64_t i) const { return static_cast<const E &>(*this).at(i); }
};
struct Vector : Expression<Vector> {
  const float *values;
  explicit Vector(const float *from) : values(from) {}
  float at(int64_t i) const { return values[i]; }
};
template <class E>
struct Scaled : Expression<Scaled<E>> {
  float factor;
  const E &inner;
  Scaled(float f, const E &e) : factor(f), inner(e) {}
  float at(int64_t i) const { return factor * inner.at(i); }
};
template <class L, class R>
struct Sum : Expression<Sum<L, R>> {
  const L &left;
  const R &right;
  Sum(const L &l, const R &r) : left(l), right(r) {}
  float at(int64_t i) const { return left.at(i) + right.at(i); }
};
template <class E>
Scaled<E> operator*(float factor, const Expression<E> &e) { return {factor, static_cast<const E &>(e)}; }
template <class L, class R>
Sum<L, R> operator+(const Expression<L> &l, const Expression<R> &r) {
  return {static_cast<const L &>(l), static_cast<const R &>(r)};
}
struct Target {
  float *to;
  int64_t n;
  template <class E>
  void operator=(const Expression<E> &e) {
    for (int64_t i = 0; i < n; i++) to[i] = e.at(i);
  }
};

extern "C" void axpy(const float *x, const float *y, float *out, int64_t n, float a) {
  Vector u(x), v(y);
  Target{out, n} = a * u + v;
}
