/* The judge's native half: its clock, its values, its comparison, its cache flush. Never loaded by a runner. */
#define _GNU_SOURCE
#include "control.h"
#include "values.h"
#include <float.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int64_t preemptions(void) {
  struct rusage use;
  getrusage(RUSAGE_THREAD, &use);
  return use.ru_nivcsw;
}

static int has_ended(int pid) {
  siginfo_t info = {0};
  return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

enum { CALL_TIMEOUT = -1, CALL_DIED = -2, AWAY_NS = 100000000 };

/* What a call tells those who keep its core warm: that it begins, or that it is over. */
enum { WARMING = 0, BEGINS = 1, OVER = 2 };

/* Keep this thread's core awake until a call begins; then let a process go on, if there is one that is to run here.
   Sent from the same core, the signal needs no interrupt, which takes tens of microseconds between virtual processors.
   Who comes too late, because somebody else had the core, must not wake what has been stopped again. */
void kc_keep_warm(const _Atomic int *phase, int runner) {
  int now;
  while ((now = atomic_load_explicit(phase, memory_order_acquire)) == WARMING) continue;
  if (runner && now == BEGINS) kill(runner, SIGCONT);
}

/* Spin until the runner has answered call `generation`, which began at `start`. Returns elapsed ns, CALL_TIMEOUT or
   CALL_DIED. */
static int64_t until_done(const struct kc_control *c, int64_t generation, int64_t start, int64_t limit_ns, int pid,
                          int runner) {
  for (int64_t checked = start;;) {
    for (int i = 0; i < 64; i++)
      if (atomic_load_explicit(&c->done, memory_order_acquire) == generation) return now_ns() - start;
    int64_t now = now_ns();
    if (now - checked > AWAY_NS) limit_ns += now - checked; /* we were stopped: nobody watched */
    if (now - start > limit_ns) return CALL_TIMEOUT;
    if (now - checked > 1000000) {
      kill(runner, SIGCONT); /* whoever was to do so may have had no core */
      if (has_ended(pid)) return CALL_DIED;
      checked = now;
    }
  }
}

/* Ask for call `generation`; returns when it began. */
static int64_t ask(struct kc_control *c, int64_t generation, int64_t what, const int64_t *slot, int64_t count) {
  c->what = what;
  memcpy(c->slot, slot, (size_t)count * sizeof *slot);
  int64_t start = now_ns();
  atomic_store_explicit(&c->go, generation, memory_order_release);
  return start;
}

/* A GPU changes hands for a call: how long (ns) it took until the runner was awake and had it, and from the end of the
   call until `take_back` had it here again. Work that goes on after its end delays that. */
struct kc_switch {
  int (*take_back)(void);
  int64_t woken_ns, back_ns;
};

/* One call of the stopped process `runner`: deliver `slot`, let it go on, spin until done, stop it. Returns elapsed ns,
   CALL_TIMEOUT or CALL_DIED. The clock runs whenever the process does: it has seen nothing of this call's values before
   the start, and what it says is done, it has no time left to finish. *phase tells `kc_keep_warm` to wake it; where
   that is null, this thread does. What bytes `watched` hold in the moment of done goes into `seen`. *disturbed counts how
   often the kernel took this thread off its core meanwhile: such a time is none.

   With `device` the process first makes a GPU its own, which is the call before this one, and the clock starts when it
   has: its one thread stands in the waiting loop then. */
int64_t kc_call(struct kc_control *c, int64_t generation, const int64_t *slot, int64_t count, int64_t what,
                int64_t limit_ns, int pid, int runner, _Atomic int *phase, const volatile unsigned char *const *watched,
                unsigned char *seen, int64_t watched_count, struct kc_switch *device, int64_t *disturbed) {
  int64_t before = preemptions();
  int64_t start = device ? ask(c, generation - 1, KC_TOUCH, 0, 0) : ask(c, generation, what, slot, count);
  if (phase) atomic_store_explicit(phase, BEGINS, memory_order_release);
  else kill(runner, SIGCONT);
  if (device) {
    device->woken_ns = until_done(c, generation - 1, start, limit_ns, pid, runner);
    if (device->woken_ns < 0) return device->woken_ns;
    before = preemptions();
    start = ask(c, generation, what, slot, count);
  }
  int64_t elapsed = until_done(c, generation, start, limit_ns, pid, runner);
  if (elapsed < 0) return elapsed;
  for (int64_t w = 0; w < watched_count; w++) seen[w] = *watched[w];
  if (phase) atomic_store_explicit(phase, OVER, memory_order_release);
  kill(runner, SIGSTOP);
  *disturbed = preemptions() - before;
  if (device && device->take_back) {
    device->take_back();
    device->back_ns = now_ns() - start - elapsed;
  }
  return elapsed;
}

#define FILL(type, expression)                                                  \
  for (int64_t i = 0; i < count; i += 4) {                                      \
    uint64_t word[4];                                                           \
    philox(word, (uint64_t)i / 4, k0, k1);                                      \
    int64_t part = count - i < 4 ? count - i : 4;                               \
    for (int64_t j = 0; j < part; j++) {                                        \
      uint64_t w = word[j];                                                     \
      ((type *)out)[i + j] = (type)(expression);                                \
    }                                                                           \
  }                                                                             \
  return 0;
/* Every value is exact as a float: on its way to a smaller type it is rounded once. */
#define FILL_FLOAT(name, expression)                                            \
  if (!strcmp(family, name)) {                                                  \
    if (!strcmp(dtype, "float16")) { FILL(uint16_t, to_float16((float)(expression))) }    \
    if (!strcmp(dtype, "bfloat16")) { FILL(uint16_t, to_bfloat16((float)(expression))) }  \
    if (!strcmp(dtype, "float32")) { FILL(float, expression) }                  \
    if (!strcmp(dtype, "float64")) { FILL(double, expression) }                 \
  }
#define FILL_INTEGER(name, expression)                                          \
  if (!strcmp(family, name)) {                                                  \
    if (!strcmp(dtype, "int32")) { FILL(int32_t, expression) }                  \
    if (!strcmp(dtype, "int64")) { FILL(int64_t, expression) }                  \
  }

/* Fill `count` elements from the stream of key (k0, k1); returns -1 for an unknown family or dtype. */
int kc_fill(void *out, int64_t count, const char *dtype, const char *family, uint64_t bound, uint64_t k0, uint64_t k1) {
  FILL_FLOAT("uniform", uniform(w))
  FILL_FLOAT("positive", positive(w))
  FILL_FLOAT("normal", normal(w))
  FILL_FLOAT("wide", wide(w))
  FILL_FLOAT("near_constant", near_constant(w))
  FILL_FLOAT("few", few(w))
  FILL_FLOAT("spiked", spiked(w))
  FILL_INTEGER("below", below(w, bound))
  FILL_INTEGER("skewed", skewed(w, bound))
  return -1;
}

void kc_poison(unsigned char *out, int64_t bytes, uint64_t key) {
  int64_t i = 0;
  for (; i + 8 <= bytes; i += 8) {
    uint64_t word = scramble(key + (uint64_t)i);
    memcpy(out + i, &word, 8);
  }
  uint64_t word = scramble(key + (uint64_t)i);
  memcpy(out + i, &word, (size_t)(bytes - i));
}

/* Offset of the first byte that differs from what kc_poison wrote there, or -1. */
int64_t kc_poison_check(const unsigned char *in, int64_t bytes, uint64_t key) {
  for (int64_t i = 0; i < bytes; i += 8) {
    uint64_t word = scramble(key + (uint64_t)i);
    int64_t part = bytes - i < 8 ? bytes - i : 8;
    if (memcmp(in + i, &word, (size_t)part)) return i;
  }
  return -1;
}

enum { BLOCK = 1024 };

/* Of an element type, whose numbers `widened` makes a float or a double: its copy in double, and how many elements are
   not within factor * |magnitude| + floor of the oracle (*first is the first of them).
   A block without branches, which the compiler vectorises, decides almost always; only where something in it is not
   plainly within its bound are the elements looked at one by one. */
#define FLOAT_TYPE(name, type, widened, largest)                                                           \
  void kc_widen_##name(const type *in, double *out, int64_t count) {                                       \
    for (int64_t i = 0; i < count; i++) out[i] = widened(in[i]);                                           \
  }                                                                                                        \
  int64_t kc_compare_##name(const type *got, const double *expected, const double *magnitude,              \
                            int64_t count, double factor, double floor_, int64_t *first) {                 \
    int64_t bad = 0;                                                                                       \
    *first = -1;                                                                                           \
    for (int64_t at = 0; at < count; at += BLOCK) {                                                        \
      int64_t end = count - at < BLOCK ? count : at + BLOCK, doubtful = 0;                                 \
      for (int64_t i = at; i < end; i++)                                                                   \
        doubtful += !(fabs((double)widened(got[i]) - expected[i]) <= factor * fabs(magnitude[i]) + floor_) | \
                    !(fabs(expected[i]) <= (largest));                                                     \
      for (int64_t i = at; doubtful && i < end; i++) {                                                     \
        double bound = factor * fabs(magnitude[i]) + floor_;                                               \
        if (!element_ok(widened(got[i]), expected[i], bound, largest) && bad++ == 0) *first = i;           \
      }                                                                                                    \
    }                                                                                                      \
    return bad;                                                                                            \
  }
FLOAT_TYPE(float16, uint16_t, from_float16, 65504)
FLOAT_TYPE(bfloat16, uint16_t, from_bfloat16, 0x1.fep127)
FLOAT_TYPE(float32, float, , FLT_MAX)
FLOAT_TYPE(float64, double, , DBL_MAX)

/* Number of elements of `width` bytes that differ; *first is the first of them. */
int64_t kc_compare_exact(const char *got, const char *expected, int64_t count, int64_t width, int64_t *first) {
  int64_t bad = 0;
  *first = -1;
  if (!memcmp(got, expected, (size_t)(count * width))) return 0;
  for (int64_t i = 0; i < count; i++)
    if (memcmp(got + i * width, expected + i * width, (size_t)width) && bad++ == 0) *first = i;
  return bad;
}

/* Put a buffer's lines out of every cache of the machine: both sides of a pair then start cold alike.
   Returns 1 where the processor has such an instruction, 0 where the caller must sweep the cache instead. */
int kc_flush(const char *at, int64_t bytes) {
#if defined(__x86_64__)
  for (int64_t i = 0; i < bytes; i += 64) __builtin_ia32_clflush(at + i);
  __builtin_ia32_mfence();
  return 1;
#elif defined(__aarch64__)
  for (int64_t i = 0; i < bytes; i += 64) __asm__ volatile("dc civac, %0" ::"r"(at + i) : "memory");
  __asm__ volatile("dsb sy" ::: "memory");
  return 1;
#else
  (void)at, (void)bytes;
  return 0;
#endif
}

/* The sweep: walk a scratch area larger than the last-level cache. */
void kc_sweep(volatile char *scratch, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) scratch[i]++;
}
