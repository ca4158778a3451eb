/* `k<<<grid, block, shared, stream>>>(arguments)` and what else launches a kernel. */
#ifndef KC_LAUNCH_H
#define KC_LAUNCH_H
#include "kc_fibres.h"

/* A function that takes what is hidden would be hidden itself: the entry point takes a stream. */
struct __attribute__((visibility("default"))) ihipStream_t;
using hipStream_t = ihipStream_t *;

namespace kc {

/* What HIP answers to a launch of that size. */
static inline hipError_t check_size(dim3 grid, dim3 block, std::size_t dynamic_bytes) {
  std::uint64_t threads = std::uint64_t(block.x) * block.y * block.z;
  if (!grid.x || !grid.y || !grid.z || !threads) return hipErrorInvalidConfiguration;
  if (block.x > MOST_THREADS || block.y > MOST_THREADS || block.z > MOST_THREADS || threads > MOST_THREADS) {
    return hipErrorInvalidConfiguration;
  }
  if (grid.x > INT32_MAX || grid.y > 65536 || grid.z > 65536) return hipErrorInvalidConfiguration;
  if (std::uint64_t(grid.x) * block.x > UINT32_MAX) return hipErrorInvalidConfiguration;
  return dynamic_bytes > DYNAMIC_BYTES ? hipErrorInvalidValue : hipSuccess;
}

/* NULL and a plain 0 become numbers when they are passed on; for a parameter that is a pointer they are null. */
template <class T> struct OrNull {
  using type = T &;
  static T &of(T &value) { return value; }
};
template <class T>
  requires(std::is_same_v<T, int> || std::is_same_v<T, long>)
struct OrNull<T> {
  struct type {
    T &value;
    operator T &() const { return value; }
    template <class P> operator P *() const {
      if (value) give_up("a number was passed for a pointer");
      return nullptr;
    }
  };
  static type of(T &value) { return {value}; }
};

/* A kernel with the shape of its grid, to be called with its arguments: they are copied once, as a launch does. */
template <class Kernel> struct Launcher {
  Kernel kernel;
  dim3 grid, block;
  std::size_t dynamic_bytes;

  template <class... A> void operator()(A... arguments) const {
    auto thread = [&] {
      if constexpr (std::is_invocable_v<Kernel, A &...>) {
        kernel(arguments...);
      } else if constexpr (std::is_invocable_v<Kernel, typename OrNull<A>::type...>) {
        kernel(OrNull<A>::of(arguments)...);
      } else {
        kernel(arguments...); /* for the compiler to say what is wrong with them */
      }
    };
    hipError_t error = check_size(grid, block, dynamic_bytes);
    answer(error == hipSuccess ? run_grid(grid, block, dynamic_bytes, thread) : error);
  }
};

template <class Kernel>
Launcher<Kernel> launcher(Kernel kernel, dim3 grid, dim3 block, std::size_t dynamic_bytes = 0, hipStream_t = nullptr) {
  return {kernel, grid, block, dynamic_bytes};
}

}  // namespace kc

/* A kernel as an object, whatever its parameters are; its name may hold commas. */
#define KC_KERNEL(...) \
  [&](auto &&...kc_arguments) -> decltype(__VA_ARGS__(kc_arguments...)) { return __VA_ARGS__(kc_arguments...); }

#define hipLaunchKernelGGL(kernel, grid, block, shared, stream, ...) \
  kc::launcher(KC_KERNEL(kernel), grid, block, shared, stream)(__VA_ARGS__)
#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define HIP_DYNAMIC_SHARED(type, name) type *const name = (type *)kc::dynamic_memory;
#endif
