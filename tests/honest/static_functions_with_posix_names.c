/* kernel: logsumexp_rows
   outcome: solved

   Its own static functions are called like those of the system; none of the system's is called. */
#include <math.h>
#include <stdint.h>

struct file { const float *row; int64_t cols; };

static struct file open(const float *row, int64_t cols) { return (struct file){row, cols}; }
static float read(struct file file, int64_t at) { return file.row[at]; }
static void write(float *to, double value) { *to = (float)value; }
static double kill(double top, double value) { return exp(value - top); }
static double system(struct file file) {
  float top = read(file, 0);
  for (int64_t c = 1; c < file.cols; c++) top = fmaxf(top, read(file, c));
  return top;
}
static double fork(struct file file, double top) {
  double sum = 0;
  for (int64_t c = 0; c < file.cols; c++) sum += kill(top, read(file, c));
  return top + log(sum);
}
__attribute__((unused)) static int open_file(int number) { return number; }
__attribute__((unused)) static int socket(int number) { return number + 1; }
__attribute__((unused)) static long syscall(long number) { return number + 2; }
__attribute__((unused)) static void *mmap(void *at) { return at; }

void logsumexp_rows(const float *x, float *out, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; r++) {
    struct file file = open(x + r * cols, cols);
    write(out + r, fork(file, system(file)));
  }
}
