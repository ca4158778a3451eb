/* kernel: spmv_csr
   outcome: solved

   A class that allocates its objects itself, from an arena on the stack, and placement new. */
#include <cstddef>
#include <cstdint>
#include <new>

class Row {
 public:
  Row(const float *values, const int32_t *columns, int64_t count) : values_(values), columns_(columns), count_(count) {}
  double times(const float *x) const {
    double sum = 0;
    for (int64_t e = 0; e < count_; e++) sum += double(values_[e]) * x[columns_[e]];
    return sum;
  }
  static void *operator new(std::size_t bytes) { return ::operator new(bytes); }
  static void *operator new(std::size_t, void *place) noexcept { return place; }
  static void operator delete(void *at) noexcept { ::operator delete(at); }

 private:
  const float *values_;
  const int32_t *columns_;
  int64_t count_;
};

extern "C" void spmv_csr(const int64_t *row_ptr, const int32_t *col_idx, const float *values, const float *x, float *y,
                         int64_t rows, int64_t, int64_t) {
  alignas(Row) std::byte place[sizeof(Row)];
  for (int64_t r = 0; r < rows; r++) {
    int64_t first = row_ptr[r], count = row_ptr[r + 1] - first;
    Row *row = r % 2 ? new Row(values + first, col_idx + first, count)
                     : new (static_cast<void *>(place)) Row(values + first, col_idx + first, count);
    y[r] = static_cast<float>(row->times(x));
    if (r % 2)
      delete row;
    else
      row->~Row();
  }
}
