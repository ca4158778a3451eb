// Wrong spmv_csr_gpu in HIP: a thread takes a run of entries and stores what it has of each row, where it should add: of
// a row in two runs, one part is lost.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 256;
constexpr int64_t RUN = 16;

// The first row that ends behind entry e.
__device__ int64_t row_of(const int64_t *row_ptr, int64_t rows, int64_t e)
{
    int64_t low = 0, high = rows - 1;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (row_ptr[middle + 1] > e)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

__global__ void store_runs(const int64_t *row_ptr, const int32_t *col_idx, const float *values, const float *x,
                           float *y, int64_t rows, int64_t nnz)
{
    int64_t e = RUN * ((int64_t)blockIdx.x * THREADS + threadIdx.x);
    const int64_t end = e + RUN < nnz ? e + RUN : nnz;
    if (e >= nnz)
        return;
    for (int64_t r = row_of(row_ptr, rows, e); e < end; r++) {
        float sum = 0.0f;
        for (; e < row_ptr[r + 1] && e < end; e++)
            sum += values[e] * x[col_idx[e]];
        y[r] = sum;
    }
}

extern "C" void spmv_csr_gpu(const int64_t *row_ptr, const int32_t *col_idx, const float *values, const float *x,
                             float *y, int64_t rows, int64_t cols, int64_t nnz, hipStream_t stream)
{
    (void)cols;
    const int64_t each = THREADS * RUN;
    (void)hipMemsetAsync(y, 0, rows * sizeof *y, stream);
    store_runs<<<(nnz + each - 1) / each, THREADS, 0, stream>>>(row_ptr, col_idx, values, x, y, rows, nnz);
}
