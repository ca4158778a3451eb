/* Clang's builtins for AMD GPUs, those that take few words. Matrix instructions are not among them. */
#ifndef KC_AMDGCN_H
#define KC_AMDGCN_H
#include "kc_maths.h"
#include "kc_waves.h"

#define __builtin_nontemporal_load(address) (*(address))
#define __builtin_nontemporal_store(value, address) ((void)(*(address) = (value)))

static inline float __builtin_amdgcn_rcpf(float x) { return 1 / x; }
static inline double __builtin_amdgcn_rcp(double x) { return 1 / x; }
static inline float __builtin_amdgcn_rsqf(float x) { return 1 / sqrtf(x); }
static inline double __builtin_amdgcn_rsq(double x) { return 1 / sqrt(x); }
static inline float __builtin_amdgcn_sqrtf(float x) { return sqrtf(x); }
static inline float __builtin_amdgcn_exp2f(float x) { return exp2f(x); }
static inline float __builtin_amdgcn_logf(float x) { return log2f(x); } /* the hardware's, to the base 2 */
static inline float __builtin_amdgcn_fmed3f(float x, float y, float z) {
  return fmaxf(fminf(x, y), fminf(fmaxf(x, y), z));
}
static inline float __builtin_amdgcn_fractf(float x) { return x - floorf(x); }
static inline unsigned __builtin_amdgcn_perm(unsigned high, unsigned low, unsigned selector) {
  return __byte_perm(low, high, (selector & 7) | (selector >> 8 & 7) << 4 | (selector >> 16 & 7) << 8 |
                                    (selector >> 24 & 7) << 12);
}
static inline unsigned __builtin_amdgcn_alignbit(unsigned high, unsigned low, unsigned shift) {
  return __funnelshift_r(low, high, shift);
}

static inline void __builtin_amdgcn_s_barrier() { __syncthreads(); }
static inline void __builtin_amdgcn_wave_barrier(KC_HERE) { __syncwarp(~0ull, line); }
/* They order what one thread after the other does in any case. */
#define __builtin_amdgcn_sched_barrier(mask) ((void)0)
#define __builtin_amdgcn_sched_group_barrier(mask, size, group) ((void)0)
#define __builtin_amdgcn_s_waitcnt(counters) ((void)0)
#define __builtin_amdgcn_s_setprio(priority) ((void)0)
#define __builtin_amdgcn_s_sleep(time) ((void)0)
#define __builtin_amdgcn_fence(order, scope) ((void)0)
static inline unsigned __builtin_amdgcn_wavefrontsize() { return KC_WAVE; }

static inline unsigned __builtin_amdgcn_workitem_id_x() { return threadIdx.x; }
static inline unsigned __builtin_amdgcn_workitem_id_y() { return threadIdx.y; }
static inline unsigned __builtin_amdgcn_workitem_id_z() { return threadIdx.z; }
static inline unsigned __builtin_amdgcn_workgroup_id_x() { return blockIdx.x; }
static inline unsigned __builtin_amdgcn_workgroup_id_y() { return blockIdx.y; }
static inline unsigned __builtin_amdgcn_workgroup_id_z() { return blockIdx.z; }

/* How many of the mask's lanes come before this one, in either half of the wave. */
static inline unsigned __builtin_amdgcn_mbcnt_lo(unsigned mask, unsigned more) {
  unsigned lane = __lane_id();
  return more + static_cast<unsigned>(__popc(lane < 32 ? mask & ((1u << lane) - 1) : mask));
}
static inline unsigned __builtin_amdgcn_mbcnt_hi(unsigned mask, unsigned more) {
  unsigned lane = __lane_id();
  return lane < 32 ? more : more + static_cast<unsigned>(__popc(mask & ((1u << (lane - 32)) - 1)));
}

static inline int __builtin_amdgcn_readfirstlane(int value, KC_HERE) {
  const kc::Wave &wave = kc::meet("readfirstlane", line, static_cast<unsigned>(value));
  return static_cast<int>(wave.seen[__builtin_ctzll(wave.met)]);
}
static inline int __builtin_amdgcn_readlane(int value, int lane, KC_HERE) {
  return kc::exchange("readlane", line, value, static_cast<unsigned>(lane) % kc::WAVE);
}
static inline int __builtin_amdgcn_ds_bpermute(int address, int value, KC_HERE) {
  return kc::exchange("ds_bpermute", line, value, static_cast<unsigned>(address) / 4 % kc::WAVE);
}

namespace kc {

/* The lane that a data-parallel move (DPP) reads in this one's stead; -1: there is none. */
static inline int dpp_source(unsigned control, int lane) {
  int row = lane & ~15, place = lane & 15, by = static_cast<int>(control & 15);
  if (control <= 0xff) return (lane & ~3) + static_cast<int>(control >> 2 * (lane & 3) & 3); /* quad_perm */
  if (control == 0x140) return row + 15 - place;                                              /* row_mirror */
  if (control == 0x141) return lane ^ 7;                                                      /* row_half_mirror */
  if (control == 0x142) return row - 1;                                                       /* row_bcast:15 */
  if (control == 0x143) return (lane & ~31) - 1;                                              /* row_bcast:31 */
  if (control == 0x130) return lane + 1 < warpSize ? lane + 1 : -1;                           /* wave_shl:1 */
  if (control == 0x138) return lane - 1;                                                      /* wave_shr:1 */
  switch (control >> 4) {
    case 0x10: return place + by < 16 ? lane + by : -1; /* row_shl */
    case 0x11: return place >= by ? lane - by : -1;     /* row_shr */
    case 0x12: return row + ((place - by) & 15);        /* row_ror */
  }
  give_up("an update_dpp has a control that is not emulated");
}

}  // namespace kc

static inline int __builtin_amdgcn_update_dpp(int old, int value, int control, int rows, int banks, bool bound,
                                               KC_HERE) {
  int lane = static_cast<int>(__lane_id()), source = kc::dpp_source(static_cast<unsigned>(control), lane);
  const kc::Wave &wave = kc::meet("update_dpp", line, static_cast<unsigned>(value));
  if (!(rows >> (lane / 16) & 1) || !(banks >> (lane / 4 % 4) & 1)) return old;
  if (source < 0 || !(wave.met >> source & 1)) return bound ? 0 : old;
  return static_cast<int>(wave.seen[source]);
}
static inline int __builtin_amdgcn_mov_dpp(int value, int control, int rows, int banks, bool bound, KC_HERE) {
  return __builtin_amdgcn_update_dpp(0, value, control, rows, banks, bound, line);
}
#endif
