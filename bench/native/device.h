/* A GPU as a runner uses it, by the functions of borrow.hip: shared by the native runner and the Python one. */
#ifndef KC_DEVICE_H
#define KC_DEVICE_H
#include "wait.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { KC_NO_DEVICE = 72, KC_DEVICE_FAILED = 73 };

static struct __attribute__((KC_OWN_PAGES)) {
  struct kc_control *control;
  const char *(*why)(int);
  int (*open)(void), (*borrow)(int, int64_t, int, void **), (*touch)(void), (*show)(void), (*begin)(void);
  int (*nothing)(void), (*end)(int64_t *);
  void *(*stream)(void);
} kc_device;

/* What the submission launched has failed, or was refused. Nothing on the device can be used after most of these
   errors. */
static void kc_device_must(int error) {
  if (!error) return;
  snprintf(kc_device.control->message, KC_MESSAGE, "the device reports: %s", kc_device.why(error));
  atomic_store_explicit(&kc_device.control->state, KC_RAISED, memory_order_release);
  _exit(KC_DEVICE_FAILED);
}
static void kc_touch_device(void) { kc_device_must(kc_device.touch()); }
static void kc_show_on_device(void) { kc_device.show(); } /* refused where no profiler is */
static void kc_begin_on_device(void) { kc_device_must(kc_device.begin()); }
static void kc_nothing_on_device(void) { kc_device_must(kc_device.nothing()); }
static int64_t kc_end_on_device(void) {
  int64_t ns = 0;
  kc_device_must(kc_device.end(&ns));
  return ns;
}
static const struct kc_around kc_around_device = {kc_touch_device, kc_show_on_device, kc_begin_on_device,
                                                  kc_nothing_on_device, kc_end_on_device};

/* Open the device with `library`, and map every buffer that `words` describe ("fd:bytes:writable", or "-", an argument):
   where they lie goes into `base`, the stream to launch on behind them. Their descriptors are closed. Returns a message,
   or null. */
static const char *kc_open_device(struct kc_control *control, const char *library, int count, char **words,
                                  char *base[KC_ARGUMENTS + 1]) {
  void *found = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!found) return dlerror();
  kc_device.control = control;
  *(void **)&kc_device.why = dlsym(found, "kc_device_why");
  *(void **)&kc_device.open = dlsym(found, "kc_device_open");
  *(void **)&kc_device.borrow = dlsym(found, "kc_device_borrow");
  *(void **)&kc_device.touch = dlsym(found, "kc_device_touch");
  *(void **)&kc_device.show = dlsym(found, "kc_device_show");
  *(void **)&kc_device.begin = dlsym(found, "kc_device_begin");
  *(void **)&kc_device.nothing = dlsym(found, "kc_device_nothing");
  *(void **)&kc_device.end = dlsym(found, "kc_device_end");
  *(void **)&kc_device.stream = dlsym(found, "kc_device_stream");
  int error = kc_device.open();
  for (int i = 0; !error && i < count && i < KC_ARGUMENTS; i++) {
    int fd, writable;
    long long bytes;
    if (sscanf(words[i], "%d:%lld:%d", &fd, &bytes, &writable) != 3) continue;
    error = kc_device.borrow(fd, bytes, writable, (void **)&base[i]);
    close(fd);
  }
  if (!error) error = kc_device.touch();
  base[KC_STREAM] = (char *)kc_device.stream();
  if (error) return kc_device.why(error);
  return mprotect(&kc_device, sizeof kc_device, PROT_READ) ? "its pages cannot be protected" : 0;
}
#endif
