! Honest softmax_rows in Fortran: a row of C is a column here, and array intrinsics do the rest.
subroutine softmax_rows(x, out, rows, cols) bind(C, name="softmax_rows")
  use, intrinsic :: iso_c_binding, only: c_float, c_int64_t
  implicit none
  integer(c_int64_t), value :: rows
  integer(c_int64_t), value :: cols
  real(c_float), intent(in) :: x(cols, rows)
  real(c_float), intent(out) :: out(cols, rows)
  integer(c_int64_t) :: r

  do r = 1, rows
    out(:, r) = exp(x(:, r) - maxval(x(:, r)))
    out(:, r) = out(:, r) / sum(out(:, r))
  end do
end subroutine softmax_rows
