/* The waiting half of the Python runner, so that an interpreter adds no latency while it waits. */
#define _GNU_SOURCE
#include "seal.h"
#include "wait.h"

int64_t kc_py_await(struct kc_control *c, int64_t last) { return kc_await(c, last); }
int64_t kc_py_empty(const struct kc_control *c) { return c->empty; }
int64_t kc_py_slot(const struct kc_control *c, int64_t i) { return c->slot[i]; }
int64_t kc_py_now(void) { return kc_own_now(); }
void kc_py_answer(struct kc_control *c, int64_t generation, int64_t own_ns) { kc_answer(c, generation, own_ns); }
int kc_py_seal(void) { return kc_seal(1); }
void kc_py_say(struct kc_control *c, int64_t state, const char *text) { kc_say(c, state, text); }
