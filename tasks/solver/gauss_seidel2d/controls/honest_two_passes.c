/* Honest gauss_seidel2d: a row's known terms first, then the recurrence along the row. */
#include <stdint.h>

void gauss_seidel2d(const float *f, float *u, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        float *row = u + i * cols;
        const float *force = f + i * cols;
        for (int64_t j = 0; j < cols - 1; j++)
            row[j] = row[j + 1];
        row[cols - 1] = 0.0f;
        for (int64_t j = 0; j < cols; j++)
            row[j] += force[j];
        if (i > 0)
            for (int64_t j = 0; j < cols; j++)
                row[j] += row[j - cols];
        if (i < rows - 1)
            for (int64_t j = 0; j < cols; j++)
                row[j] += row[j + cols];
        float west = 0.0f;
        for (int64_t j = 0; j < cols; j++)
            row[j] = west = 0.25f * (row[j] + west);
    }
}
