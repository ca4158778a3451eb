// Honest spmv_csr in HIP: a thread takes a run of entries, whatever rows they are in, and adds each row's part
// atomically to a result that was cleared before. Long rows and short ones then cost the same.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 256;
constexpr int64_t RUN = 8;

// The row that holds entry e: the last one that starts at or before it.
__device__ int64_t row_of(const int64_t *row_ptr, int64_t rows, int64_t e)
{
    int64_t low = 0, high = rows;
    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        if (row_ptr[middle] <= e)
            low = middle;
        else
            high = middle;
    }
    return low;
}

__global__ void add_runs(const int64_t *row_ptr, const int32_t *col_idx, const float *values, const float *x, float *y,
                         int64_t rows, int64_t nnz)
{
    int64_t e = RUN * ((int64_t)blockIdx.x * THREADS + threadIdx.x);
    const int64_t end = e + RUN < nnz ? e + RUN : nnz;
    if (e >= nnz)
        return;
    for (int64_t r = row_of(row_ptr, rows, e); e < end; r++) {
        const int64_t stop = row_ptr[r + 1] < end ? row_ptr[r + 1] : end;
        if (e == stop)
            continue;
        float sum = 0.0f;
        for (; e < stop; e++)
            sum += values[e] * x[col_idx[e]];
        atomicAdd(&y[r], sum);
    }
}

extern "C" void spmv_csr(const int64_t *row_ptr, const int32_t *col_idx, const float *values, const float *x, float *y,
                         int64_t rows, int64_t cols, int64_t nnz, hipStream_t stream)
{
    (void)cols;
    const int64_t each = THREADS * RUN;
    (void)hipMemsetAsync(y, 0, rows * sizeof *y, stream);
    add_runs<<<(nnz + each - 1) / each, THREADS, 0, stream>>>(row_ptr, col_idx, values, x, y, rows, nnz);
}
