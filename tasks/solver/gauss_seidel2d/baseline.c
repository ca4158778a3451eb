/* Baseline of gauss_seidel2d: point by point; neighbours outside the grid count as zero. */
#include <stdint.h>
#include <tgmath.h>

#ifndef real
#define real float
#endif

void gauss_seidel2d(const real *f, real *u, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < cols; j++) {
            real *at = u + i * cols + j;
            const real north = i > 0 ? at[-cols] : 0;
            const real west = j > 0 ? at[-1] : 0;
            const real east = j < cols - 1 ? at[1] : 0;
            const real south = i < rows - 1 ? at[cols] : 0;
            *at = (real)0.25 * (north + west + east + south + f[i * cols + j]);
        }
    }
}

#ifdef KC_ORACLE
void gauss_seidel2d_magnitude(const real *f, real *u, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < cols; j++) {
            real *at = u + i * cols + j;
            const real north = i > 0 ? at[-cols] : 0;
            const real west = j > 0 ? at[-1] : 0;
            const real east = j < cols - 1 ? fabs(at[1]) : 0;
            const real south = i < rows - 1 ? fabs(at[cols]) : 0;
            *at = (real)0.25 * (north + west + east + south + fabs(f[i * cols + j]));
        }
    }
}
#endif
