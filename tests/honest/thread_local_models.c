/* kernel: histogram
   outcome: solved

   Thread-local counters by each of the ways in which a library can reach them. */
#include <stdint.h>

enum { TABLE = 64 };
static __thread int32_t general[TABLE] __attribute__((tls_model("global-dynamic")));
static __thread int32_t module_wide[TABLE] __attribute__((tls_model("local-dynamic")));
static __thread int32_t early[TABLE] __attribute__((tls_model("initial-exec")));

void histogram(const int32_t *x, int32_t *counts, int64_t n, int64_t bins) {
  for (int64_t low = 0; low < bins; low += 3 * TABLE) {
    for (int b = 0; b < TABLE; b++) general[b] = module_wide[b] = early[b] = 0;
    for (int64_t i = 0; i < n; i++) {
      int64_t b = x[i] - low;
      if (b < 0 || b >= 3 * TABLE) continue;
      (b < TABLE ? general : b < 2 * TABLE ? module_wide : early)[b % TABLE]++;
    }
    for (int64_t b = low; b < bins && b < low + 3 * TABLE; b++) {
      int64_t at = (b - low) % TABLE, part = (b - low) / TABLE;
      counts[b] = part == 0 ? general[at] : part == 1 ? module_wide[at] : early[at];
    }
  }
}
