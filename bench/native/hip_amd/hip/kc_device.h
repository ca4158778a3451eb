/* Under the headers of 16-bit floats, where clang compiles them for AMD's GPUs: what the emulator has of its own.

   The offline kit lays it and them beside HIP's other headers, which come without. */
#ifndef KC_DEVICE_H
#define KC_DEVICE_H
#include <cmath>
#include <type_traits>

/* Between them functions are for the host and the device, as if it were written before each. */
#define KC_BOTH_SIDES_BEGIN _Pragma("clang force_cuda_host_device begin")
#define KC_BOTH_SIDES_END _Pragma("clang force_cuda_host_device end")

KC_BOTH_SIDES_BEGIN
namespace kc {
template <class To, class From> inline To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}

/* Replace a pair of 16-bit floats in memory by what `change` makes of it; returns what was there. */
template <class T, class Change> inline T exchange_for(T *address, Change change) {
  unsigned *const word = reinterpret_cast<unsigned *>(address);
  for (unsigned before = *word;;) {
    const unsigned found = atomicCAS(word, before, bits_as<unsigned>(change(bits_as<T>(before))));
    if (found == before) return bits_as<T>(found);
    before = found;
  }
}
}  // namespace kc
KC_BOTH_SIDES_END
#endif
