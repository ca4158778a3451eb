/* The process that a native submission runs in: maps borrowed buffers, loads the library, answers calls, knows nothing. */
#define _GNU_SOURCE
#include "seal.h"
#include "wait.h"
#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FIRST = 7 };
typedef void (*kernel_t)(void);
typedef void (*invoke_t)(kernel_t, char **, const int64_t *);

static struct kc_control *control;
static struct { char *low, *high; } lent[KC_ARGUMENTS];

/* Note whose buffer (or guard page) a fault lay in; the default action, restored by SA_RESETHAND, then ends us. */
static void on_fault(int signal, siginfo_t *info, void *context) {
  (void)signal, (void)context;
  for (int i = 0; i < KC_ARGUMENTS; i++)
    if ((char *)info->si_addr >= lent[i].low && (char *)info->si_addr < lent[i].high) control->fault = i + 1;
}

static void watch_faults(void) {
  static char stack[1 << 14]; /* a kernel that overflowed its own has none to handle the fault on */
  sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, 0);
  struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | (int)SA_RESETHAND};
  sigaction(SIGSEGV, &action, 0);
  sigaction(SIGBUS, &action, 0);
}

/* Map an argument's buffer between two pages that fault, read-only unless the kernel may write to it. */
static char *borrow(int argument, int fd, size_t bytes, int writable) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char *region = mmap(0, bytes + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (region == MAP_FAILED) return 0;
  lent[argument].low = region;
  lent[argument].high = region + bytes + 2 * page;
  char *at = mmap(region + page, bytes, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED | MAP_POPULATE | MAP_FIXED, fd, 0);
  return at == MAP_FAILED ? 0 : at;
}

static void pin(const char *cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const char *at = cores; *at; at += *at == ',') CPU_SET((int)strtol(at, (char **)&at, 10), &set);
  sched_setaffinity(0, sizeof set, &set);
}

/* argv: control-fd, cores "1,2", sealed "1" or "0", invoke.so, library.so, symbol, then "fd:bytes:writable" (or "-")
   an argument. */
int main(int argc, char **argv) {
  if (argc < FIRST) return 64;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_CHILD_SUBREAPER, 1); /* what a submission forks twice stays among our descendants */
  struct kc_control *c = control = mmap(0, sizeof *c, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(argv[1]), 0);
  if (c == MAP_FAILED) return 65;
  char *base[KC_ARGUMENTS] = {0};
  for (int i = FIRST; i < argc && i - FIRST < KC_ARGUMENTS; i++) {
    int fd, writable;
    size_t bytes;
    if (sscanf(argv[i], "%d:%zu:%d", &fd, &bytes, &writable) != 3) continue;
    if (!(base[i - FIRST] = borrow(i - FIRST, fd, bytes, writable))) return kc_say(c, KC_STARTING, "a buffer could not be mapped"), 66;
  }
  syscall(SYS_close_range, 3, ~0U, 0);
  pin(argv[2]);
  void *shim = dlopen(argv[4], RTLD_NOW | RTLD_LOCAL);
  invoke_t invoke = shim ? (invoke_t)dlsym(shim, "kc_invoke") : 0;
  if (!invoke) return kc_say(c, KC_STARTING, dlerror()), 67;
  watch_faults();
  kc_say(c, KC_LOADING, "");
  void *library = dlopen(argv[5], RTLD_NOW | RTLD_LOCAL);
  if (!library) return kc_say(c, KC_NOT_LOADED, dlerror()), 68;
  kernel_t kernel = (kernel_t)dlsym(library, argv[6]);
  if (!kernel) return kc_say(c, KC_NO_SYMBOL, dlerror()), 69;
  if (argv[3][0] == '1' && kc_seal(0)) return kc_say(c, KC_STARTING, "the kernel refused the system call filter"), 70;
  uint64_t fp = kc_fp_state();
  kc_say(c, KC_READY, "");
  for (int64_t last = 0;;) {
    last = kc_await(c, last);
    if (last < 0) _exit(0);
    int64_t start = kc_own_now();
    if (!c->empty) invoke(kernel, base, c->slot);
    int64_t own_ns = kc_own_now() - start;
    if (kc_fp_state() != fp) c->fp_changed++;
    kc_answer(c, last, own_ns);
  }
}
