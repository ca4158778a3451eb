/* The waiting half of the Python runner: the loop is native, so that an interpreter adds nothing to it. */
#define _GNU_SOURCE
#include "device.h"
#include "seal.h"
#include "wait.h"

int64_t kc_py_slot(const struct kc_control *c, int64_t i) { return c->slot[i]; }
void kc_py_wait_admitted(struct kc_control *c) { kc_wait_admitted(c); }
void kc_py_serve(struct kc_control *c, void (*call)(void)) { kc_serve(c, call, 0); }
int kc_py_seal(void) { return kc_seal(KC_SEALED_READER); }
void kc_py_say(struct kc_control *c, int64_t state, const char *text) { kc_say(c, state, text); }

/* The same on a GPU (device.h). */
const char *kc_py_open_device(struct kc_control *c, const char *library, int count, char **words, char **base) {
  return kc_open_device(c, library, count, words, base);
}
void kc_py_serve_on_device(struct kc_control *c, void (*call)(void)) { kc_serve(c, call, &kc_around_device); }
int kc_py_seal_on_device(void) { return kc_seal(KC_SEALED_DEVICE); }
