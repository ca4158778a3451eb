/* kernel: gelu
   outcome: solved

   Threads by <threads.h>: two started, a mutex around what is left to do, both joined. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <threads.h>

typedef struct {
  const float *x;
  float *out;
  int64_t next, n;
  mtx_t mutex;
} job_t;

static int work(void *argument) {
  job_t *job = argument;
  for (;;) {
    mtx_lock(&job->mutex);
    int64_t first = job->next;
    job->next += 512;
    mtx_unlock(&job->mutex);
    if (first >= job->n) return 0;
    for (int64_t i = first; i < job->n && i < first + 512; i++)
      job->out[i] = 0.5f * job->x[i] * erfcf(-job->x[i] * (float)M_SQRT1_2);
  }
}

void gelu(const float *x, float *out, int64_t n) {
  job_t job = {x, out, 0, n, {{0}}};
  thrd_t threads[2];
  if (mtx_init(&job.mutex, mtx_plain) != thrd_success) abort();
  for (int t = 0; t < 2; t++)
    if (thrd_create(threads + t, work, &job) != thrd_success) abort();
  for (int t = 0; t < 2; t++) thrd_join(threads[t], 0);
  mtx_destroy(&job.mutex);
}
