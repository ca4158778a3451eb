// Honest transpose in HIP: a thread turns a square of four by four in its registers; squares at the edges go by element.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 256, SIDE = 4;

__global__ void turn_squares(const float *x, float *out, int64_t rows, int64_t cols, int64_t squares)
{
    const int64_t square = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (square >= squares)
        return;
    const int64_t down = (rows + SIDE - 1) / SIDE;
    const int64_t r = square % down * SIDE, c = square / down * SIDE;
    if (r + SIDE > rows || c + SIDE > cols) {
        for (int64_t i = r; i < r + SIDE && i < rows; i++)
            for (int64_t j = c; j < c + SIDE && j < cols; j++)
                out[j * rows + i] = x[i * cols + j];
        return;
    }
    float kept[SIDE][SIDE];
#pragma unroll
    for (int i = 0; i < SIDE; i++)
#pragma unroll
        for (int j = 0; j < SIDE; j++)
            kept[j][i] = x[(r + i) * cols + c + j];
#pragma unroll
    for (int j = 0; j < SIDE; j++)
#pragma unroll
        for (int i = 0; i < SIDE; i++)
            out[(c + j) * rows + r + i] = kept[j][i];
}

extern "C" void transpose(const float *x, float *out, int64_t rows, int64_t cols, hipStream_t stream)
{
    const int64_t squares = (rows + SIDE - 1) / SIDE * ((cols + SIDE - 1) / SIDE);
    turn_squares<<<(squares + THREADS - 1) / THREADS, THREADS, 0, stream>>>(x, out, rows, cols, squares);
}
