/* kernel: floyd_warshall
   outcome: solved

   Helpers that other files could see, with names that only sound like the system's. */
#include <stdint.h>

float optimize = 1;
int target[2];

float read_row(const float *dist, int64_t n, int64_t row, int64_t at) { return dist[row * n + at]; }
void write_back(float *at, float value) { *at = value; }
int open_block(int64_t i, int64_t n) { return i < n; }
float time_step(float a, float b) { return a + b; }
void kernel(float *at, float through) {
  if (through < *at) write_back(at, through);
}

void main_loop(float *dist, int64_t n, int64_t k) {
  for (int64_t i = 0; open_block(i, n); i++) {
    float first = read_row(dist, n, i, k) * optimize;
    for (int64_t j = 0; open_block(j, n); j++) kernel(dist + i * n + j, time_step(first, read_row(dist, n, k, j)));
  }
  target[k & 1] = (int)k;
}

void floyd_warshall(float *dist, int64_t n) {
  for (int64_t k = 0; k < n; k++) main_loop(dist, n, k);
}
