/* What the threads of a block and the lanes of a wave do together. */
#ifndef KC_WAVES_H
#define KC_WAVES_H
#include "kc_fibres.h"

/* A parameter: the line that a call stands in. */
#define KC_HERE unsigned line = __builtin_LINE()

static inline void __syncthreads() { kc::reach_barrier(false); }
static inline int __syncthreads_count(int predicate) {
  kc::reach_barrier(predicate);
  return static_cast<int>(kc::block.voted);
}
static inline int __syncthreads_or(int predicate) { return __syncthreads_count(predicate) > 0; }
static inline int __syncthreads_and(int predicate) {
  return __syncthreads_count(predicate) == static_cast<int>(kc::block.met);
}

/* One thread runs at a time, and none is interrupted: what it wrote is there. */
static inline void __threadfence() {}
static inline void __threadfence_block() {}
static inline void __threadfence_system() {}

static inline unsigned __lane_id() { return kc::running.number % kc::WAVE; }

namespace kc {

/* The results are read before any lane can come to the next one: that would need all of them. */
template <class T> T exchange(const char *operation, unsigned line, T value, unsigned source) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>, "lanes pass on plain values of up to 8 bytes");
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  const Wave &wave = meet(operation, line, bits);
  /* A lane that has returned, and with it one that there never was, sends the reader's own value. */
  bool is_there = source < WAVE && wave.met >> source & 1;
  if (is_there) std::memcpy(static_cast<void *>(&value), &wave.seen[source], sizeof value);
  return value;
}

/* First lane of the part of the wave, `width` lanes wide, that this one belongs to. */
static inline int part_of(int lane, int width) { return lane & ~(width - 1); }

template <class Mask> constexpr void check_mask() {
  static_assert(std::is_integral_v<Mask> && sizeof(Mask) == 8, "the mask of a wave's lanes is a 64-bit integer");
}

}  // namespace kc

template <class T> T __shfl(T value, int source, int width = warpSize, KC_HERE) {
  int lane = static_cast<int>(__lane_id());
  return kc::exchange("__shfl", line, value, (source & (width - 1)) + kc::part_of(lane, width));
}

template <class T> T __shfl_up(T value, unsigned delta, int width = warpSize, KC_HERE) {
  int lane = static_cast<int>(__lane_id()), source = lane - static_cast<int>(delta);
  return kc::exchange("__shfl_up", line, value, source < kc::part_of(lane, width) ? lane : source);
}

template <class T> T __shfl_down(T value, unsigned delta, int width = warpSize, KC_HERE) {
  int lane = static_cast<int>(__lane_id()), source = lane + static_cast<int>(delta);
  return kc::exchange("__shfl_down", line, value, source >= kc::part_of(lane, width) + width ? lane : source);
}

template <class T> T __shfl_xor(T value, int mask, int width = warpSize, KC_HERE) {
  int lane = static_cast<int>(__lane_id()), source = lane ^ mask;
  return kc::exchange("__shfl_xor", line, value, source >= kc::part_of(lane, width) + width ? lane : source);
}

static inline unsigned long long __ballot(int predicate, KC_HERE) {
  return kc::meet("__ballot", line, predicate != 0).voted;
}
static inline int __any(int predicate, KC_HERE) { return kc::meet("__any", line, predicate != 0).voted != 0; }
static inline int __all(int predicate, KC_HERE) {
  const kc::Wave &wave = kc::meet("__all", line, predicate != 0);
  return wave.voted == wave.met;
}
static inline unsigned long long __activemask(KC_HERE) {
  return kc::meet("__activemask", line, 1).voted;
}

/* The forms with a mask are for the whole wave, too. */
template <class Mask, class T>
T __shfl_sync(Mask, T value, int source, int width = warpSize, KC_HERE) {
  kc::check_mask<Mask>();
  return __shfl(value, source, width, line);
}
template <class Mask, class T>
T __shfl_up_sync(Mask, T value, unsigned delta, int width = warpSize, KC_HERE) {
  kc::check_mask<Mask>();
  return __shfl_up(value, delta, width, line);
}
template <class Mask, class T>
T __shfl_down_sync(Mask, T value, unsigned delta, int width = warpSize, KC_HERE) {
  kc::check_mask<Mask>();
  return __shfl_down(value, delta, width, line);
}
template <class Mask, class T>
T __shfl_xor_sync(Mask, T value, int mask, int width = warpSize, KC_HERE) {
  kc::check_mask<Mask>();
  return __shfl_xor(value, mask, width, line);
}
template <class Mask> unsigned long long __ballot_sync(Mask, int predicate, KC_HERE) {
  kc::check_mask<Mask>();
  return __ballot(predicate, line);
}
template <class Mask> int __any_sync(Mask, int predicate, KC_HERE) {
  kc::check_mask<Mask>();
  return __any(predicate, line);
}
template <class Mask> int __all_sync(Mask, int predicate, KC_HERE) {
  kc::check_mask<Mask>();
  return __all(predicate, line);
}
static inline void __syncwarp(unsigned long long /* mask */ = ~0ull, KC_HERE) { kc::meet("__syncwarp", line, 0); }
#endif
