/* The process that a native submission runs in: maps borrowed buffers, loads the library, answers calls, knows nothing. */
#define _GNU_SOURCE
#include "device.h"
#include "lend.h"
#include "seal.h"
#include "wait.h"
#include <dlfcn.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FIRST = 8, ALIGNMENT = 64, NO_MEMORY = 71 };

static struct kc_control *control;
static struct kc_lent lent[KC_ARGUMENTS];

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

static struct __attribute__((KC_OWN_PAGES)) {
  kc_invoke invoke;
  kc_kernel kernel;
  char *base[KC_ARGUMENTS + 1];
} entry;

#ifdef KC_CHECKED
/* Built with a sanitizer: every array of a call is a block of the heap of exactly its size, between red zones. */
static void call(void) {
  char *block[KC_ARGUMENTS] = {0}, *base[KC_ARGUMENTS + 1] = {0};
  for (int i = 0; i < KC_ARGUMENTS; i++) {
    base[i] = entry.base[i];
    if (!entry.base[i]) continue;
    if (posix_memalign((void **)&block[i], ALIGNMENT, (size_t)control->bytes[i])) _exit(NO_MEMORY);
    memcpy(block[i], entry.base[i] + control->slot[i], (size_t)control->bytes[i]);
    base[i] = block[i] - control->slot[i];
  }
  entry.invoke(entry.kernel, base, control->slot);
  for (int i = 0; i < KC_ARGUMENTS; i++) {
    if (lent[i].writable) memcpy(entry.base[i] + control->slot[i], block[i], (size_t)control->bytes[i]);
    free(block[i]);
  }
}
#else
static void call(void) {
  entry.invoke(entry.kernel, entry.base, control->slot);
}
#endif

/* Seal this process as the judge says (enum kc_sealed), or not at all (-1). */
static void must_be_sealed(int how) {
  if (how < 0 || !kc_seal((enum kc_sealed)how)) return;
  kc_say(control, KC_STARTING, "the kernel refused the system call filter");
  _exit(70);
}

/* argv: control-fd, cores "1,2", sealed "0", "1", "2" (files may be read) or "3" (a GPU is used), the library of a GPU
   or "-", invoke.so, library.so, symbol, then "fd:bytes:writable" (or "-") an argument. */
int main(int argc, char **argv) {
  if (argc < FIRST) return 64;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_CHILD_SUBREAPER, 1); /* what a submission forks twice stays among our descendants */
  struct kc_control *c = control = mmap(0, sizeof *c, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(argv[1]), 0);
  if (c == MAP_FAILED) return 65;
  const int on_device = argv[4][0] != '-';
  if (on_device) {
    const char *failed = kc_open_device(c, argv[4], argc - FIRST, argv + FIRST, entry.base);
    if (failed) return kc_say(c, KC_STARTING, failed), KC_NO_DEVICE;
    close(atoi(argv[1])); /* and no others: some are the device's own */
  } else if (kc_borrow_all(argc - FIRST, argv + FIRST, lent)) {
    return kc_say(c, KC_STARTING, "a buffer could not be mapped"), 66;
  }
  for (int i = 0; i < KC_ARGUMENTS && !on_device; i++) entry.base[i] = lent[i].base;
  if (!on_device) syscall(SYS_close_range, 3, ~0U, 0);
  void *shim = dlopen(argv[5], RTLD_NOW | RTLD_LOCAL);
  entry.invoke = shim ? (kc_invoke)dlsym(shim, "kc_invoke") : 0;
  if (!entry.invoke) return kc_say(c, KC_STARTING, dlerror()), 67;
#ifndef KC_CHECKED
  watch_faults();
#endif
  kc_wait_admitted(c);
  kc_pin(argv[2]);
  kc_say(c, KC_LOADING, "");
  const int seal = argv[3][0] - '1';
  /* On a device, libraries have code that runs when they are loaded; its filter lets the loader work. */
  if (on_device) must_be_sealed(seal);
  void *library = dlopen(argv[6], RTLD_NOW | RTLD_LOCAL);
  if (!library) return kc_say(c, KC_NOT_LOADED, dlerror()), 68;
  entry.kernel = (kc_kernel)dlsym(library, argv[7]);
  if (!entry.kernel) return kc_say(c, KC_NO_SYMBOL, dlerror()), 69;
  if (mprotect(&entry, sizeof entry, PROT_READ)) return kc_say(c, KC_STARTING, "its pages cannot be protected"), 74;
  if (!on_device) must_be_sealed(seal);
  kc_say(c, KC_READY, "");
  kc_serve(c, call, on_device ? &kc_around_device : 0);
  _exit(0);
}
