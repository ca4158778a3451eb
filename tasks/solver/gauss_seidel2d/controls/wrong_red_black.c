/* Wrong gauss_seidel2d: sweeps the points of even i + j first, which is another order of updates. */
#include <stdint.h>

void gauss_seidel2d(const float *f, float *u, int64_t rows, int64_t cols)
{
    for (int64_t colour = 0; colour < 2; colour++) {
        for (int64_t i = 0; i < rows; i++) {
            for (int64_t j = (i + colour) % 2; j < cols; j += 2) {
                float *at = u + i * cols + j;
                float sum = f[i * cols + j];
                sum += i > 0 ? at[-cols] : 0.0f;
                sum += j > 0 ? at[-1] : 0.0f;
                sum += j < cols - 1 ? at[1] : 0.0f;
                sum += i < rows - 1 ? at[cols] : 0.0f;
                *at = 0.25f * sum;
            }
        }
    }
}
