/* What a process does that loads a submission, whether it is called or profiled: borrows the judge's buffers, pins
   itself. */
#ifndef KC_LEND_H
#define KC_LEND_H
#include "control.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

typedef void (*kc_kernel)(void);
typedef void (*kc_invoke)(kc_kernel, char **, const int64_t *);

/* One argument's buffer as it is mapped here, between two pages that fault; nothing where it is no array. */
struct kc_lent {
  char *low, *high; /* with the two pages */
  char *base;
  size_t bytes;
  int writable;
};

static int kc_borrow(struct kc_lent *lent, int fd) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char *region = mmap(0, lent->bytes + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (region == MAP_FAILED) return -1;
  lent->low = region;
  lent->high = region + lent->bytes + 2 * page;
  int access = PROT_READ | (lent->writable ? PROT_WRITE : 0);
  lent->base = mmap(region + page, lent->bytes, access, MAP_SHARED | MAP_POPULATE | MAP_FIXED, fd, 0);
  return lent->base == MAP_FAILED ? -1 : 0;
}

/* Map every buffer that `words` describe: "fd:bytes:writable", or "-", an argument; -1 when one cannot be mapped. */
static int kc_borrow_all(int count, char **words, struct kc_lent lent[KC_ARGUMENTS]) {
  for (int i = 0; i < count && i < KC_ARGUMENTS; i++) {
    int fd;
    if (sscanf(words[i], "%d:%zu:%d", &fd, &lent[i].bytes, &lent[i].writable) != 3) continue;
    if (kc_borrow(&lent[i], fd)) return -1;
  }
  return 0;
}

/* Stay on the cores of a list "1,2". */
static void kc_pin(const char *cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const char *at = cores; *at; at += *at == ',') CPU_SET((int)strtol(at, (char **)&at, 10), &set);
  sched_setaffinity(0, sizeof set, &set);
}
#endif
