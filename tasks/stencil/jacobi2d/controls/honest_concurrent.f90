! Honest jacobi2d in Fortran: the border copied with everything else, the inside in any order.
subroutine jacobi2d(x, out, rows, cols) bind(C, name="jacobi2d")
  use, intrinsic :: iso_c_binding, only: c_float, c_int64_t
  implicit none
  integer(c_int64_t), value :: rows
  integer(c_int64_t), value :: cols
  real(c_float), intent(in) :: x(cols, rows)
  real(c_float), intent(out) :: out(cols, rows)
  integer(c_int64_t) :: r, c

  out = x
  do concurrent (r = 2:rows - 1, c = 2:cols - 1)
    out(c, r) = 0.2 * (x(c, r) + (x(c, r - 1) + x(c, r + 1)) + (x(c - 1, r) + x(c + 1, r)))
  end do
end subroutine jacobi2d
