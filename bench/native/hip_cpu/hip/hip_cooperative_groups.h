/* HIP's cooperative groups as far as a block reaches: no grid can wait for itself where its blocks take turns. */
#ifndef KC_HIP_COOPERATIVE_GROUPS_H
#define KC_HIP_COOPERATIVE_GROUPS_H
#include "hip_runtime.h"

namespace cooperative_groups {

struct thread_block {
  static void sync() { __syncthreads(); }
  static unsigned thread_rank() { return kc::running.number; }
  static unsigned size() { return kc::block.count; }
  static unsigned num_threads() { return kc::block.count; }
  static dim3 group_index() { return blockIdx; }
  static dim3 thread_index() { return threadIdx; }
  static dim3 group_dim() { return blockDim; }
};
static inline thread_block this_thread_block() { return {}; }

/* A part of a wave. What its lanes do together, the whole wave has to do. */
template <unsigned SIZE, class = void> struct thread_block_tile {
  static_assert(SIZE && SIZE <= kc::WAVE && (SIZE & (SIZE - 1)) == 0, "a tile is a power of two, and part of a wave");
  static constexpr int WIDTH = static_cast<int>(SIZE);

  static void sync(KC_HERE) { __syncwarp(~0ull, line); }
  static constexpr unsigned size() { return SIZE; }
  static constexpr unsigned num_threads() { return SIZE; }
  static unsigned thread_rank() { return kc::running.number % SIZE; }
  static unsigned meta_group_rank() { return kc::running.number / SIZE; }
  static unsigned meta_group_size() { return (kc::block.count + SIZE - 1) / SIZE; }

  template <class T> static T shfl(T value, int source, KC_HERE) {
    return __shfl(value, source, WIDTH, line);
  }
  template <class T> static T shfl_up(T value, unsigned delta, KC_HERE) {
    return __shfl_up(value, delta, WIDTH, line);
  }
  template <class T> static T shfl_down(T value, unsigned delta, KC_HERE) {
    return __shfl_down(value, delta, WIDTH, line);
  }
  template <class T> static T shfl_xor(T value, int mask, KC_HERE) {
    return __shfl_xor(value, mask, WIDTH, line);
  }
  static unsigned long long ballot(int predicate, KC_HERE) { return of_tile(__ballot(predicate, line)); }
  static int any(int predicate, KC_HERE) { return ballot(predicate, line) != 0; }
  static int all(int predicate, KC_HERE) { return ballot(!predicate, line) == 0; }

 private:
  static unsigned long long of_tile(unsigned long long lanes) {
    return lanes >> (__lane_id() & ~(SIZE - 1)) & ~0ull >> (64 - SIZE);
  }
};

template <unsigned SIZE> thread_block_tile<SIZE> tiled_partition(const thread_block &) { return {}; }
template <unsigned SIZE, unsigned WIDER>
  requires(SIZE <= WIDER)
thread_block_tile<SIZE> tiled_partition(const thread_block_tile<WIDER> &) {
  return {};
}

template <class Group> void sync(const Group &group) { group.sync(); }

}  // namespace cooperative_groups
#endif
