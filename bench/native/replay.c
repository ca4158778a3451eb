/* The process that a profiler watches: calls a submission on prepared inputs, the same at every call, for a while. */
#define _GNU_SOURCE
#include "lend.h"
#include "seal.h"
#include "wait.h"
#include <dlfcn.h>
#include <signal.h>
#include <sys/prctl.h>

enum { FIRST = 8 };
static struct kc_lent lent[KC_ARGUMENTS];
static char *saved[KC_ARGUMENTS];

/* Not memcpy, into which compilers turn such a loop: what is spent in the C library is the submission's own. */
static void copy(char *to, const char *from, size_t bytes) {
  for (size_t i = 0; i < bytes / sizeof(int64_t); i++) ((volatile int64_t *)to)[i] = ((const int64_t *)from)[i];
}

/* Keep what the writable buffers hold: a kernel that updates them in place must find the same at every call. */
static int save(void) {
  for (int i = 0; i < KC_ARGUMENTS; i++) {
    if (!lent[i].base || !lent[i].writable) continue;
    if (!(saved[i] = malloc(lent[i].bytes))) return -1;
    copy(saved[i], lent[i].base, lent[i].bytes);
  }
  return 0;
}

static void restore(void) {
  for (int i = 0; i < KC_ARGUMENTS; i++)
    if (saved[i]) copy(lent[i].base, saved[i], lent[i].bytes);
}

/* CPU time: a busy machine makes a profile late, but not short of samples. */
static int64_t cpu_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* argv: control-fd, cores "1,2", sealed "1" or "0", ms of CPU time to go on with calls (0: one call), invoke.so,
   library.so, symbol, then "fd:bytes:writable" (or "-") an argument. The calls' words are in the control page; `done`
   counts the calls that came back. */
int main(int argc, char **argv) {
  if (argc < FIRST) return 64;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  struct kc_control *c = mmap(0, sizeof *c, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(argv[1]), 0);
  if (c == MAP_FAILED) return 65;
  if (kc_borrow_all(argc - FIRST, argv + FIRST, lent)) return kc_say(c, KC_STARTING, "a buffer could not be mapped"), 66;
  char *base[KC_ARGUMENTS + 1];
  for (int i = 0; i < KC_ARGUMENTS; i++) base[i] = lent[i].base;
  int64_t for_ns = atoll(argv[4]) * 1000000;
  if (for_ns && save()) return kc_say(c, KC_STARTING, "no memory for a copy of the inputs"), 66;
  kc_pin(argv[2]);
  void *shim = dlopen(argv[5], RTLD_NOW | RTLD_LOCAL);
  kc_invoke invoke = shim ? (kc_invoke)dlsym(shim, "kc_invoke") : 0;
  if (!invoke) return kc_say(c, KC_STARTING, dlerror()), 67;
  kc_say(c, KC_LOADING, "");
  void *library = dlopen(argv[6], RTLD_NOW | RTLD_LOCAL);
  kc_kernel kernel = library ? (kc_kernel)dlsym(library, argv[7]) : 0;
  if (!kernel) return kc_say(c, KC_NOT_LOADED, dlerror()), 68;
  if (argv[3][0] == '1' && kc_seal(0)) return kc_say(c, KC_STARTING, "the kernel refused the system call filter"), 70;
  kc_say(c, KC_READY, "");
  int64_t start = cpu_now();
  for (;;) {
    invoke(kernel, base, c->slot);
    c->done++;
    if (cpu_now() - start >= for_ns) break;
    restore();
  }
  return kc_say(c, KC_ENDED, ""), 0;
}
