/* kernel: scatter_add
   outcome: solved

   A helper thread with a larger stack, handed halves of the work through POSIX semaphores. */
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct {
  const int32_t *index;
  const float *values;
  float *y;
  int64_t first, end, low, high;
  sem_t ready, done;
  pthread_spinlock_t lock;
} job_t;

static void add(const job_t *job, int64_t low, int64_t high) {
  for (int64_t e = job->first; e < job->end; e++)
    if (job->index[e] >= low && job->index[e] < high) job->y[job->index[e]] += job->values[e];
}

static void *help(void *argument) {
  job_t *job = argument;
  for (int turn = 0; turn < 2; turn++) {
    sem_wait(&job->ready);
    pthread_spin_lock(&job->lock);
    int64_t low = job->low, high = job->high;
    pthread_spin_unlock(&job->lock);
    add(job, low, high);
    sem_post(&job->done);
  }
  return 0;
}

void scatter_add(const int32_t *index, const float *values, float *y, int64_t n, int64_t count) {
  job_t job = {index, values, y, 0, 0, n / 2, n, {{0}}, {{0}}, 0};
  pthread_attr_t attributes;
  pthread_t thread;
  sem_init(&job.ready, 0, 0), sem_init(&job.done, 0, 0), pthread_spin_init(&job.lock, 0);
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 4 << 20);
  if (pthread_create(&thread, &attributes, help, &job)) abort();
  for (int turn = 0; turn < 2; turn++) {
    job.first = job.end;
    job.end = turn ? count : count / 2;
    sem_post(&job.ready);
    add(&job, 0, n / 2);
    sem_wait(&job.done);
  }
  pthread_join(thread, 0);
  pthread_attr_destroy(&attributes);
  pthread_spin_destroy(&job.lock), sem_destroy(&job.ready), sem_destroy(&job.done);
}
