// Honest spmv_csr_gpu in HIP: a block takes so many entries, whatever rows they are in. It multiplies them into shared
// memory; then a thread adds up what the block has of a row, and adds that to a result which was cleared before.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 128, ENTRIES = 1024;

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

__global__ void add_shares(const int64_t *row_ptr, const int32_t *col_idx, const float *values, const float *x,
                           float *y, int64_t rows, int64_t nnz)
{
    __shared__ float product[ENTRIES];
    const int64_t first = (int64_t)blockIdx.x * ENTRIES, end = first + ENTRIES < nnz ? first + ENTRIES : nnz;
    for (int64_t e = first + threadIdx.x; e < end; e += THREADS)
        product[e - first] = values[e] * x[col_idx[e]];
    __syncthreads();
    const int64_t top = row_of(row_ptr, rows, first);
    for (int64_t r = top + threadIdx.x; r < rows && row_ptr[r] < end; r += THREADS) {
        const int64_t from = row_ptr[r] > first ? row_ptr[r] : first, to = row_ptr[r + 1] < end ? row_ptr[r + 1] : end;
        float sum = 0.0f;
        for (int64_t e = from; e < to; e++)
            sum += product[e - first];
        if (to > from)
            atomicAdd(&y[r], sum);
    }
}

extern "C" void spmv_csr_gpu(const int64_t *row_ptr, const int32_t *col_idx, const float *values, const float *x,
                             float *y, int64_t rows, int64_t cols, int64_t nnz, hipStream_t stream)
{
    (void)cols;
    (void)hipMemsetAsync(y, 0, rows * sizeof *y, stream);
    add_shares<<<(nnz + ENTRIES - 1) / ENTRIES, THREADS, 0, stream>>>(row_ptr, col_idx, values, x, y, rows, nnz);
}
