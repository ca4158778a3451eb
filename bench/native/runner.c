/* The process that a native submission runs in: maps borrowed buffers, loads the library, answers calls, knows nothing. */
#define _GNU_SOURCE
#include "lend.h"
#include "seal.h"
#include "wait.h"
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FIRST = 8, ALIGNMENT = 64, NO_MEMORY = 71, NO_DEVICE = 72, DEVICE_FAILED = 73 };

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

static struct { kc_invoke invoke; kc_kernel kernel; char *base[KC_ARGUMENTS + 1]; } entry;

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

/* A GPU, by the functions of borrow.hip; none where no library is named. */
static struct {
  const char *(*why)(int);
  int (*open)(void), (*borrow)(int, int64_t, int, void **), (*touch)(void), (*begin)(void), (*end)(int64_t *);
  void *(*stream)(void);
} device;

/* The submission's own: what it launched has failed, or was refused. Nothing on the device can be used after most of
   these errors. */
static void must(int error) {
  if (!error) return;
  snprintf(control->message, KC_MESSAGE, "the device reports: %s", device.why(error));
  atomic_store_explicit(&control->state, KC_RAISED, memory_order_release);
  _exit(DEVICE_FAILED);
}
static void touch(void) { must(device.touch()); }
static void begin(void) { must(device.begin()); }
static int64_t end(void) {
  int64_t ns = 0;
  must(device.end(&ns));
  return ns;
}
static const struct kc_around around_calls = {touch, begin, end};

/* Map buffers of the device; a message, or null. */
static const char *borrow_on_device(const char *library, int count, char **words) {
  void *found = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!found) return dlerror();
  device.why = (const char *(*)(int))dlsym(found, "kc_device_why");
  device.open = (int (*)(void))dlsym(found, "kc_device_open");
  device.borrow = (int (*)(int, int64_t, int, void **))dlsym(found, "kc_device_borrow");
  device.touch = (int (*)(void))dlsym(found, "kc_device_touch");
  device.begin = (int (*)(void))dlsym(found, "kc_device_begin");
  device.end = (int (*)(int64_t *))dlsym(found, "kc_device_end");
  device.stream = (void *(*)(void))dlsym(found, "kc_device_stream");
  int error = device.open();
  for (int i = 0; !error && i < count && i < KC_ARGUMENTS; i++) {
    int fd, writable;
    long long bytes;
    if (sscanf(words[i], "%d:%lld:%d", &fd, &bytes, &writable) == 3)
      error = device.borrow(fd, bytes, writable, (void **)&entry.base[i]);
  }
  if (!error) error = device.touch();
  entry.base[KC_STREAM] = device.stream();
  return error ? device.why(error) : 0;
}

/* A GPU's own descriptors have to stay open. */
static void close_lent(int count, char **words, int control_fd, int on_device) {
  if (!on_device) syscall(SYS_close_range, 3, ~0U, 0);
  else close(control_fd);
  for (int i = 0; on_device && i < count; i++) close(atoi(words[i]));
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
    const char *failed = borrow_on_device(argv[4], argc - FIRST, argv + FIRST);
    if (failed) return kc_say(c, KC_STARTING, failed), NO_DEVICE;
  } else if (kc_borrow_all(argc - FIRST, argv + FIRST, lent)) {
    return kc_say(c, KC_STARTING, "a buffer could not be mapped"), 66;
  }
  for (int i = 0; i < KC_ARGUMENTS && !on_device; i++) entry.base[i] = lent[i].base;
  close_lent(argc - FIRST, argv + FIRST, atoi(argv[1]), on_device);
  void *shim = dlopen(argv[5], RTLD_NOW | RTLD_LOCAL);
  entry.invoke = shim ? (kc_invoke)dlsym(shim, "kc_invoke") : 0;
  if (!entry.invoke) return kc_say(c, KC_STARTING, dlerror()), 67;
#ifndef KC_CHECKED
  watch_faults();
#endif
  kc_wait_admitted(c);
  kc_pin(argv[2]);
  kc_say(c, KC_LOADING, "");
  void *library = dlopen(argv[6], RTLD_NOW | RTLD_LOCAL);
  if (!library) return kc_say(c, KC_NOT_LOADED, dlerror()), 68;
  entry.kernel = (kc_kernel)dlsym(library, argv[7]);
  if (!entry.kernel) return kc_say(c, KC_NO_SYMBOL, dlerror()), 69;
  if (argv[3][0] != '0' && kc_seal(argv[3][0] - '1')) return kc_say(c, KC_STARTING, "the kernel refused the system call filter"), 70;
  kc_say(c, KC_READY, "");
  kc_serve(c, call, on_device ? &around_calls : 0);
  _exit(0);
}
