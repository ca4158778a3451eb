// Honest spmv_csr_gpu in HIP: a first launch has a thread a row and leaves out long rows; in a second one, blocks look
// through all rows for long ones, and take them one by one.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 256;
constexpr int64_t LONG = 64, MOST_BLOCKS = 1024;

__global__ void multiply_short_rows(const int64_t *row_ptr, const int32_t *col_idx, const float *values,
                                    const float *x, float *y, int64_t rows)
{
    const int64_t r = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (r >= rows || row_ptr[r + 1] - row_ptr[r] > LONG)
        return;
    float sum = 0.0f;
    for (int64_t e = row_ptr[r]; e < row_ptr[r + 1]; e++)
        sum = fmaf(values[e], x[col_idx[e]], sum);
    y[r] = sum;
}

__device__ float block_sum(float value)
{
    __shared__ float part[THREADS];
    const int me = threadIdx.x;
    part[me] = value;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (me < half)
            part[me] += part[me + half];
        __syncthreads();
    }
    const float sum = part[0];
    __syncthreads();
    return sum;
}

__global__ void multiply_long_rows(const int64_t *row_ptr, const int32_t *col_idx, const float *values, const float *x,
                                   float *y, int64_t rows)
{
    __shared__ int found[THREADS];
    for (int64_t first = (int64_t)blockIdx.x * THREADS; first < rows; first += (int64_t)gridDim.x * THREADS) {
        const int64_t mine = first + threadIdx.x;
        found[threadIdx.x] = mine < rows && row_ptr[mine + 1] - row_ptr[mine] > LONG;
        __syncthreads();
        for (int t = 0; t < THREADS; t++) {
            if (!found[t]) // the same for all threads
                continue;
            float sum = 0.0f;
            for (int64_t e = row_ptr[first + t] + threadIdx.x; e < row_ptr[first + t + 1]; e += THREADS)
                sum = fmaf(values[e], x[col_idx[e]], sum);
            sum = block_sum(sum);
            if (threadIdx.x == 0)
                y[first + t] = sum;
        }
        __syncthreads(); // `found` is done with
    }
}

extern "C" void spmv_csr_gpu(const int64_t *row_ptr, const int32_t *col_idx, const float *values, const float *x,
                             float *y, int64_t rows, int64_t cols, int64_t nnz, hipStream_t stream)
{
    (void)cols;
    (void)nnz;
    const int64_t blocks = (rows + THREADS - 1) / THREADS;
    multiply_short_rows<<<blocks, THREADS, 0, stream>>>(row_ptr, col_idx, values, x, y, rows);
    multiply_long_rows<<<blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS, THREADS, 0, stream>>>(row_ptr, col_idx, values, x,
                                                                                            y, rows);
}
