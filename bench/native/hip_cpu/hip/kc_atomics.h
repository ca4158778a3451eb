/* Atomic operations. Nobody interrupts a thread between two of its steps, so plain ones do. */
#ifndef KC_ATOMICS_H
#define KC_ATOMICS_H
#include <type_traits>

namespace kc {

template <class T, class... U> concept OneOf = (std::is_same_v<T, U> || ...);
/* The types that HIP has each operation for: what it refuses must not work here. */
template <class T> concept AtomicInteger = OneOf<T, int, unsigned, unsigned long, unsigned long long>;
template <class T> concept AtomicNumber = AtomicInteger<T> || OneOf<T, float, double>;
template <class T> concept AtomicOrdered = AtomicNumber<T> || OneOf<T, long, long long>;
template <class T> concept AtomicCounter = OneOf<T, unsigned>;
/* The second operand has no say in what T is: 1 may be added to a float. */
template <class T> using Operand = std::type_identity_t<T>;

/* Does `change` to what is at `address`, and returns what was there. */
template <class T, class Change> inline T exchange_for(T *address, Change change) {
  T before = *address;
  *address = change(before);
  return before;
}

}  // namespace kc

/* Each in the three forms that say who is to see it. */
#define KC_ATOMIC(name, concept, expression)                                                               \
  template <kc::concept T> T name(T *address, kc::Operand<T> value) {                                      \
    return kc::exchange_for(address, [value](T before) { return static_cast<T>(expression); });            \
  }                                                                                                        \
  template <kc::concept T> T name##_system(T *address, kc::Operand<T> value) { return name(address, value); } \
  template <kc::concept T> T name##_block(T *address, kc::Operand<T> value) { return name(address, value); }

KC_ATOMIC(atomicAdd, AtomicNumber, before + value)
KC_ATOMIC(atomicSub, AtomicNumber, before - value)
KC_ATOMIC(atomicMin, AtomicOrdered, value < before ? value : before)
KC_ATOMIC(atomicMax, AtomicOrdered, before < value ? value : before)
KC_ATOMIC(atomicExch, AtomicNumber, ((void)before, value))
KC_ATOMIC(atomicAnd, AtomicInteger, before & value)
KC_ATOMIC(atomicOr, AtomicInteger, before | value)
KC_ATOMIC(atomicXor, AtomicInteger, before ^ value)
KC_ATOMIC(atomicInc, AtomicCounter, before >= value ? 0 : before + 1)
KC_ATOMIC(atomicDec, AtomicCounter, before == 0 || before > value ? value : before - 1)
#undef KC_ATOMIC

template <kc::AtomicNumber T> T atomicCAS(T *address, kc::Operand<T> compare, kc::Operand<T> value) {
  /* By its bits, as the hardware does: a NaN is itself, and -0 is not 0. */
  return kc::exchange_for(address, [&](T before) {
    return __builtin_memcmp(&before, &compare, sizeof before) == 0 ? value : before;
  });
}
template <kc::AtomicNumber T> T atomicCAS_system(T *address, kc::Operand<T> compare, kc::Operand<T> value) {
  return atomicCAS(address, compare, value);
}
template <kc::AtomicNumber T> T atomicCAS_block(T *address, kc::Operand<T> compare, kc::Operand<T> value) {
  return atomicCAS(address, compare, value);
}

template <kc::OneOf<float, double> T> T unsafeAtomicAdd(T *address, kc::Operand<T> value) {
  return atomicAdd(address, value);
}
template <kc::OneOf<float, double> T> T safeAtomicAdd(T *address, kc::Operand<T> value) {
  return atomicAdd(address, value);
}
template <kc::OneOf<float, double> T> T unsafeAtomicMin(T *address, kc::Operand<T> value) {
  return atomicMin(address, value);
}
template <kc::OneOf<float, double> T> T unsafeAtomicMax(T *address, kc::Operand<T> value) {
  return atomicMax(address, value);
}

/* Clang's own, which take an order and a scope. */
#define __HIP_MEMORY_SCOPE_SINGLETHREAD 1
#define __HIP_MEMORY_SCOPE_WAVEFRONT 2
#define __HIP_MEMORY_SCOPE_WORKGROUP 3
#define __HIP_MEMORY_SCOPE_AGENT 4
#define __HIP_MEMORY_SCOPE_SYSTEM 5

#define __hip_atomic_load(address, order, scope) (*(address))
#define __hip_atomic_store(address, value, order, scope) ((void)(*(address) = (value)))
#define __hip_atomic_exchange(address, value, order, scope) atomicExch(address, value)
#define __hip_atomic_fetch_add(address, value, order, scope) atomicAdd(address, value)
#define __hip_atomic_fetch_min(address, value, order, scope) atomicMin(address, value)
#define __hip_atomic_fetch_max(address, value, order, scope) atomicMax(address, value)
#define __hip_atomic_fetch_and(address, value, order, scope) atomicAnd(address, value)
#define __hip_atomic_fetch_or(address, value, order, scope) atomicOr(address, value)
#define __hip_atomic_fetch_xor(address, value, order, scope) atomicXor(address, value)

template <kc::AtomicNumber T>
bool __hip_atomic_compare_exchange_strong(T *address, T *expected, kc::Operand<T> value, int, int, int) {
  T wanted = *expected;
  *expected = atomicCAS(address, wanted, value);
  return __builtin_memcmp(expected, &wanted, sizeof wanted) == 0;
}
#define __hip_atomic_compare_exchange_weak __hip_atomic_compare_exchange_strong
#endif
