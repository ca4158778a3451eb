! kernel: prefix_sum
! outcome: solved
!
! Procedures within the entry point; one is recursive, and all of them see its variables.
subroutine prefix_sum(x, out, n) bind(C, name="prefix_sum")
  use, intrinsic :: iso_c_binding, only: c_float, c_double, c_int64_t
  implicit none
  integer(c_int64_t), value :: n
  real(c_float), intent(in) :: x(n)
  real(c_float), intent(out) :: out(n)
  real(c_double) :: sums(n)
  sums = real(x, c_double)
  call scan(1_c_int64_t, n)
  out = real(sums, c_float)
contains
  recursive subroutine scan(first, last)
    integer(c_int64_t), intent(in) :: first, last
    integer(c_int64_t) :: middle
    if (first == last) return
    middle = half(first, last)
    call scan(first, middle)
    call scan(middle + 1, last)
    sums(middle + 1:last) = sums(middle + 1:last) + sums(middle)
  end subroutine scan

  pure integer(c_int64_t) function half(first, last) result(middle)
    integer(c_int64_t), intent(in) :: first, last
    middle = first + (last - first)/2
  end function half
end subroutine prefix_sum
