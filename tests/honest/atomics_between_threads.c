/* kernel: histogram
   outcome: solved

   C11 atomics as counters, a spin lock of its own, fences; aligned to cache lines. */
#include <stdatomic.h>
#include <stdint.h>

static _Alignas(64) atomic_flag busy = ATOMIC_FLAG_INIT;

void histogram(const int32_t *x, int32_t *counts, int64_t n, int64_t bins) {
  _Atomic int64_t seen = 0;
  for (int64_t b = 0; b < bins; b++) counts[b] = 0;
  atomic_thread_fence(memory_order_seq_cst);
#pragma omp parallel for num_threads(2)
  for (int64_t i = 0; i < n; i++) {
    __atomic_fetch_add(counts + x[i], 1, __ATOMIC_RELAXED);
    if (i % 1000 == 0) {
      while (atomic_flag_test_and_set_explicit(&busy, memory_order_acquire)) continue;
      seen += 1;
      atomic_flag_clear_explicit(&busy, memory_order_release);
    }
  }
}
