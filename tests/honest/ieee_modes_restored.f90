! kernel: prefix_sum
! outcome: solved
!
! Rounds the running sum down and up by the IEEE modules, and puts the mode back.
subroutine prefix_sum(x, out, n) bind(C, name="prefix_sum")
  use, intrinsic :: iso_c_binding, only: c_float, c_double, c_int64_t
  use, intrinsic :: ieee_arithmetic
  implicit none
  integer(c_int64_t), value :: n
  real(c_float), intent(in) :: x(n)
  real(c_float), intent(out) :: out(n)
  type(ieee_round_type) :: before
  real(c_double), volatile :: low, high
  integer(c_int64_t) :: i
  low = 0
  high = 0
  call ieee_get_rounding_mode(before)
  do i = 1, n
    call ieee_set_rounding_mode(ieee_down)
    low = low + x(i)
    call ieee_set_rounding_mode(ieee_up)
    high = high + x(i)
    call ieee_set_rounding_mode(before)
    out(i) = real(low + (high - low)/2, c_float)
    if (ieee_is_nan(out(i))) out(i) = x(i)
  end do
end subroutine prefix_sum
