! Honest logsumexp_rows in Fortran: a row of C is a column here, and array intrinsics do the rest.
subroutine logsumexp_rows(x, out, rows, cols) bind(C, name="logsumexp_rows")
  use, intrinsic :: iso_c_binding, only: c_float, c_int64_t
  implicit none
  integer(c_int64_t), value :: rows
  integer(c_int64_t), value :: cols
  real(c_float), intent(in) :: x(cols, rows)
  real(c_float), intent(out) :: out(rows)
  integer(c_int64_t) :: r
  real(c_float) :: top

  do r = 1, rows
    top = maxval(x(:, r))
    out(r) = top + log(sum(exp(x(:, r) - top)))
  end do
end subroutine logsumexp_rows
