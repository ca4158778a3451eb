/* The waiting half of the Python runner: the loop is native, so that an interpreter adds nothing to it. */
#define _GNU_SOURCE
#include "seal.h"
#include "wait.h"

int64_t kc_py_slot(const struct kc_control *c, int64_t i) { return c->slot[i]; }
void kc_py_wait_admitted(struct kc_control *c) { kc_wait_admitted(c); }
void kc_py_serve(struct kc_control *c, void (*call)(void)) { kc_serve(c, call, 0); }
int kc_py_seal(void) { return kc_seal(1); }
void kc_py_say(struct kc_control *c, int64_t state, const char *text) { kc_say(c, state, text); }
