! Honest spmv_csr in Fortran: dot_product of a row's entries with the gathered vector.
subroutine spmv_csr(row_ptr, col_idx, values, x, y, rows, cols, nnz) bind(C, name="spmv_csr")
  use, intrinsic :: iso_c_binding, only: c_float, c_int32_t, c_int64_t
  implicit none
  integer(c_int64_t), value :: rows
  integer(c_int64_t), value :: cols
  integer(c_int64_t), value :: nnz
  integer(c_int64_t), intent(in) :: row_ptr(rows + 1)
  integer(c_int32_t), intent(in) :: col_idx(0:nnz - 1)
  real(c_float), intent(in) :: values(0:nnz - 1)
  real(c_float), intent(in) :: x(0:cols - 1)
  real(c_float), intent(out) :: y(rows)
  integer(c_int64_t) :: r, first, last

  do r = 1, rows
    first = row_ptr(r)
    last = row_ptr(r + 1) - 1
    y(r) = dot_product(values(first:last), x(col_idx(first:last)))
  end do
end subroutine spmv_csr
