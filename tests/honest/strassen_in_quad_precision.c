/* kernel: sgemm
   outcome: solved

   Strassen's recursion on padded squares, in 128 bits so that its cancellation does no harm; large ones go straight. */
#include <stdint.h>
#include <stdlib.h>

enum { LEAF = 16, LARGEST = 64 };
typedef __float128 wide_t;

static void plain(const wide_t *a, const wide_t *b, wide_t *c, int64_t size, int64_t pitch) {
  for (int64_t i = 0; i < size; i++)
    for (int64_t j = 0; j < size; j++) {
      wide_t sum = 0;
      for (int64_t p = 0; p < size; p++) sum += a[i * pitch + p] * b[p * pitch + j];
      c[i * size + j] = sum;
    }
}

/* c[size][size] += sign * p, for a block at (row, column) of a matrix of twice the size. */
static void put(wide_t *c, const wide_t *p, int64_t size, int row, int column, wide_t sign) {
  for (int64_t i = 0; i < size; i++)
    for (int64_t j = 0; j < size; j++) c[(row * size + i) * 2 * size + column * size + j] += sign * p[i * size + j];
}

static void mix(const wide_t *left, const wide_t *right, wide_t sign, wide_t *to, int64_t size, int64_t pitch) {
  for (int64_t i = 0; i < size; i++)
    for (int64_t j = 0; j < size; j++)
      to[i * size + j] = left[i * pitch + j] + (sign ? sign * right[i * pitch + j] : 0);
}

static void multiply(const wide_t *a, const wide_t *b, wide_t *c, int64_t size, int64_t pitch) {
  if (size <= LEAF) {
    plain(a, b, c, size, pitch);
    return;
  }
  int64_t half = size / 2, down = half * pitch;
  const wide_t *a11 = a, *a12 = a + half, *a21 = a + down, *a22 = a + down + half;
  const wide_t *b11 = b, *b12 = b + half, *b21 = b + down, *b22 = b + down + half;
  wide_t *space = malloc(3 * (size_t)(half * half) * sizeof *space);
  if (!space) abort();
  wide_t *s = space, *t = s + half * half, *p = t + half * half;
  for (int64_t i = 0; i < size * size; i++) c[i] = 0;
#define PRODUCT(l1, l2, ls, r1, r2, rs) \
  mix(l1, l2, ls, s, half, pitch), mix(r1, r2, rs, t, half, pitch), multiply(s, t, p, half, half)
  PRODUCT(a11, a22, 1, b11, b22, 1), put(c, p, half, 0, 0, 1), put(c, p, half, 1, 1, 1);
  PRODUCT(a21, a22, 1, b11, b11, 0), put(c, p, half, 1, 0, 1), put(c, p, half, 1, 1, -1);
  PRODUCT(a11, a11, 0, b12, b22, -1), put(c, p, half, 0, 1, 1), put(c, p, half, 1, 1, 1);
  PRODUCT(a22, a22, 0, b21, b11, -1), put(c, p, half, 0, 0, 1), put(c, p, half, 1, 0, 1);
  PRODUCT(a11, a12, 1, b22, b22, 0), put(c, p, half, 0, 0, -1), put(c, p, half, 0, 1, 1);
  PRODUCT(a21, a11, -1, b11, b12, 1), put(c, p, half, 1, 1, 1);
  PRODUCT(a12, a22, -1, b21, b22, 1), put(c, p, half, 0, 0, 1);
#undef PRODUCT
  free(space);
}

static void straight(const float *A, const float *B, float *C, int64_t m, int64_t n, int64_t k) {
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      double sum = 0;
      for (int64_t p = 0; p < k; p++) sum += (double)A[i * k + p] * B[p * n + j];
      C[i * n + j] = (float)sum;
    }
}

void sgemm(const float *A, const float *B, float *C, int64_t m, int64_t n, int64_t k) {
  int64_t size = LEAF;
  while (size < m || size < n || size < k) size *= 2;
  if (size > LARGEST) {
    straight(A, B, C, m, n, k);
    return;
  }
  wide_t *a = calloc(3 * (size_t)(size * size), sizeof *a), *b = a + size * size, *c = b + size * size;
  if (!a) abort();
  for (int64_t i = 0; i < m; i++)
    for (int64_t p = 0; p < k; p++) a[i * size + p] = A[i * k + p];
  for (int64_t p = 0; p < k; p++)
    for (int64_t j = 0; j < n; j++) b[p * size + j] = B[p * n + j];
  multiply(a, b, c, size, size);
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) C[i * n + j] = (float)c[i * size + j];
  free(a);
}
