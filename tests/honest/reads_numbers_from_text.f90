! kernel: rmsnorm
! outcome: solved
!
! Constants read from a character variable: a read statement, but of no file.
subroutine rmsnorm(x, weight, out, rows, cols, eps) bind(C, name="rmsnorm")
  use, intrinsic :: iso_c_binding, only: c_float, c_double, c_int64_t
  implicit none
  integer(c_int64_t), value :: rows, cols
  real(c_float), intent(in) :: x(cols, rows), weight(cols)
  real(c_float), intent(out) :: out(cols, rows)
  real(c_float), value :: eps
  real(c_double) :: scale, exponents(2)
  character(len=5) :: text
  integer(c_int64_t) :: r
  integer :: status
  text = '0.5 2'
  read (text, *, iostat=status) exponents
  if (status /= 0) return
  do r = 1, rows
    scale = (sum(abs(real(x(:, r), c_double))**exponents(2))/cols + eps)**exponents(1)
    out(:, r) = real(x(:, r)/scale*weight, c_float)
  end do
end subroutine rmsnorm
