/* kernel: nbody
   outcome: solved

   Threads of its own: started, made to meet at a barrier, told to go on by a condition, and joined within the call. */
#include <math.h>
#include <pthread.h>
#include <stdint.h>

enum { THREADS = 2 };

typedef struct {
  const float *x, *y, *z, *mass;
  float *ax, *ay, *az, floor_square;
  int64_t n;
  int open;
  pthread_mutex_t mutex;
  pthread_cond_t opened;
  pthread_barrier_t all_here;
} job_t;

typedef struct {
  job_t *job;
  int number;
} share_t;

static void *work(void *argument) {
  share_t *share = argument;
  job_t *job = share->job;
  pthread_barrier_wait(&job->all_here);
  pthread_mutex_lock(&job->mutex);
  while (!job->open) pthread_cond_wait(&job->opened, &job->mutex);
  pthread_mutex_unlock(&job->mutex);
  for (int64_t i = share->number; i < job->n; i += THREADS) {
    float sum_x = 0, sum_y = 0, sum_z = 0;
    for (int64_t j = 0; j < job->n; j++) {
      float dx = job->x[j] - job->x[i], dy = job->y[j] - job->y[i], dz = job->z[j] - job->z[i];
      float square = dx * dx + dy * dy + dz * dz + job->floor_square;
      float pull = job->mass[j] / (square * sqrtf(square));
      sum_x += dx * pull, sum_y += dy * pull, sum_z += dz * pull;
    }
    job->ax[i] = sum_x, job->ay[i] = sum_y, job->az[i] = sum_z;
  }
  return 0;
}

void nbody(const float *x, const float *y, const float *z, const float *mass, float *ax, float *ay, float *az,
           int64_t n, float soft) {
  job_t job = {x, y, z, mass, ax, ay, az, soft * soft + 0x1p-10f, n, 0, .mutex = PTHREAD_MUTEX_INITIALIZER,
               .opened = PTHREAD_COND_INITIALIZER};
  pthread_t threads[THREADS];
  share_t shares[THREADS];
  pthread_barrier_init(&job.all_here, 0, THREADS + 1);
  for (int t = 0; t < THREADS; t++) {
    shares[t] = (share_t){&job, t};
    if (pthread_create(&threads[t], 0, work, &shares[t])) __builtin_trap();
  }
  pthread_barrier_wait(&job.all_here);
  pthread_mutex_lock(&job.mutex);
  job.open = 1;
  pthread_cond_broadcast(&job.opened);
  pthread_mutex_unlock(&job.mutex);
  for (int t = 0; t < THREADS; t++) pthread_join(threads[t], 0);
  pthread_barrier_destroy(&job.all_here);
}
