/* The page that a judge and one runner share: the judge stamps `go`, the runner answers with `done`. */
#ifndef KC_CONTROL_H
#define KC_CONTROL_H
#include <stdatomic.h>
#include <stdint.h>

#define KC_ARGUMENTS 32
/* Behind the arguments' bases stands the stream of a GPU, null where there is none. */
#define KC_STREAM KC_ARGUMENTS
#define KC_MESSAGE 2048

/* STARTING: the runner's own work; LOADING: from here on it is the submission that may end the process; ENDED: all
   calls that a profiler watches have come back; REFUSED: it had a library do what is a kernel's to do. */
enum kc_state { KC_STARTING = 0, KC_READY = 1, KC_NOT_LOADED = 2, KC_NO_SYMBOL = 3, KC_RAISED = 4, KC_LOADING = 5, KC_ENDED = 6, KC_REFUSED = 7 };

/* What a call is: of the kernel; empty, to calibrate the clock; one that only makes a GPU this process's again; or the
   only one, of the kernel, after which the runner ends: a profiler watches it. */
enum kc_what { KC_KERNEL = 0, KC_EMPTY = 1, KC_TOUCH = 2, KC_WATCHED = 3 };

/* In pages of its own: what a runner makes read-only before a submission runs, so that none can exchange it. */
#if defined(__aarch64__)
#define KC_OWN_PAGES aligned(1 << 16)
#else
#define KC_OWN_PAGES aligned(1 << 12)
#endif

/* `go` and `done` lie on cache lines of their own, or each side would slow the other's spinning. */
struct kc_control {
  _Alignas(128) _Atomic int64_t go;
  int64_t what;                      /* enum kc_what */
  int64_t slot[KC_ARGUMENTS];        /* per argument: byte offset in its buffer, size, or scalar bits */
  _Alignas(128) _Atomic int64_t done;
  int64_t own_ns;                    /* the runner's own clock over the call; never credited */
  _Atomic int64_t state;             /* enum kc_state */
  int64_t fp_changed;                /* calls that left another rounding mode, mask or flush-to-zero behind */
  _Atomic int64_t admitted;          /* set by the judge: the library may be loaded */
  int64_t fault;                     /* 1 + the argument whose buffer or guard a memory fault lay in, or 0 */
  char message[KC_MESSAGE];          /* the runner's words, for the log only */
  int64_t bytes[KC_ARGUMENTS];       /* of each array at this call, for a checked runner (runner.c) */
};
#endif
