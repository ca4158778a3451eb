/* The runner's side of the control page, shared by the native runner and the Python runner. */
#ifndef KC_WAIT_H
#define KC_WAIT_H
#include "control.h"
#include <signal.h>
#include <string.h>
#include <time.h>

static int64_t kc_own_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void kc_say(struct kc_control *c, int64_t state, const char *text) {
  strncpy(c->message, text ? text : "", KC_MESSAGE - 1);
  atomic_store_explicit(&c->state, state, memory_order_release);
}

static void kc_pause(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* Stop until the judge lets us in: the submission may still be compiled, the cores be another's. A scheduler that ends
   a job continues what is stopped in it, which lets nobody in. */
static void kc_wait_admitted(struct kc_control *c) {
  while (!atomic_load_explicit(&c->admitted, memory_order_acquire)) raise(SIGSTOP);
}

/* Answer call `last`, then spin until the judge asks for another; returns its generation. A function of its own: the
   judge looks whether the stopped main thread stands in it, and nowhere else. */
/* Plain: a sanitizer would keep values of its own on the stack. */
#define KC_PLAIN noinline, no_sanitize("address", "undefined")
static __attribute__((KC_PLAIN)) int64_t kc_exchange(struct kc_control *c, int64_t last, int64_t own_ns) {
  int64_t generation;
  c->own_ns = own_ns;
  atomic_store_explicit(&c->done, last, memory_order_release);
  while ((generation = atomic_load_explicit(&c->go, memory_order_acquire)) == last) kc_pause();
  return generation;
}

/* What a kernel could leave behind to change later arithmetic: rounding mode, exception masks, flush-to-zero. */
static inline uint64_t kc_fp_state(void) {
#if defined(__x86_64__)
  uint16_t x87;
  __asm__ volatile("fnstcw %0" : "=m"(x87));
  return (uint64_t)x87 << 32 | (__builtin_ia32_stmxcsr() & ~0x3fu);
#elif defined(__aarch64__)
  uint64_t fpcr;
  __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
  return fpcr;
#else
  return 0;
#endif
}

/* Stores past the caches are ordered with no other: they must be there before the word that says so. */
static inline void kc_finish_stores(void) {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#else
  atomic_thread_fence(memory_order_seq_cst);
#endif
}

/* What stands around a call on a GPU: `begin` before it, `end` after it, which waits for all that was launched and
   returns how long (ns) that took by the device's own clock. `nothing` launches a kernel that does nothing, `touch`
   makes the device this process's again; `show` tells a profiler to count what follows. */
struct kc_around {
  void (*touch)(void), (*show)(void), (*begin)(void), (*nothing)(void);
  int64_t (*end)(void);
};

/* Answer calls with `call` until the judge sends a negative generation, or the one that a profiler watches is over. An
   empty call stays in here: what it takes is nobody's to stretch, and what lies in the buffers meanwhile nobody's to
   look at. On a GPU it launches one kernel, as every call must. */
static inline void kc_serve(struct kc_control *c, void (*call)(void), const struct kc_around *around) {
  uint64_t fp = kc_fp_state();
  for (int64_t last = 0, own_ns = 0;;) {
    last = kc_exchange(c, last, own_ns);
    if (last < 0) return;
    if (around && c->what == KC_TOUCH) {
      around->touch();
      continue;
    }
    if (around && c->what == KC_WATCHED) around->show();
    int64_t start = kc_own_now();
    if (around) around->begin();
    if (c->what != KC_EMPTY) call();
    else if (around) around->nothing();
    int64_t device_ns = around ? around->end() : 0;
    kc_finish_stores();
    own_ns = around ? device_ns : kc_own_now() - start;
    if (kc_fp_state() != fp) c->fp_changed++;
    if (c->what == KC_WATCHED) {
      kc_say(c, KC_ENDED, "");
      return;
    }
  }
}
#endif
