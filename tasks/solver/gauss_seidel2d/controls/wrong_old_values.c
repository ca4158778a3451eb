/* Wrong gauss_seidel2d: a Jacobi sweep, which takes all four neighbours from before the sweep. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void gauss_seidel2d(const float *f, float *u, int64_t rows, int64_t cols)
{
    float *old = malloc(rows * cols * sizeof *old);
    memcpy(old, u, rows * cols * sizeof *old);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < cols; j++) {
            const float *at = old + i * cols + j;
            float sum = f[i * cols + j];
            sum += i > 0 ? at[-cols] : 0.0f;
            sum += j > 0 ? at[-1] : 0.0f;
            sum += j < cols - 1 ? at[1] : 0.0f;
            sum += i < rows - 1 ? at[cols] : 0.0f;
            u[i * cols + j] = 0.25f * sum;
        }
    }
    free(old);
}
