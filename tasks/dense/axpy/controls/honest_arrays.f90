! Honest axpy in Fortran: one array expression.
subroutine axpy(x, y, out, n, a) bind(C, name="axpy")
  use, intrinsic :: iso_c_binding, only: c_float, c_int64_t
  implicit none
  integer(c_int64_t), value :: n
  real(c_float), intent(in) :: x(n)
  real(c_float), intent(in) :: y(n)
  real(c_float), intent(out) :: out(n)
  real(c_float), value :: a

  out = a * x + y
end subroutine axpy
