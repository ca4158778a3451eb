! Honest segment_max in Fortran: maxval of each section; of an empty one it is the smallest number.
subroutine segment_max(first, x, out, segments, n, start) bind(C, name="segment_max")
  use, intrinsic :: iso_c_binding, only: c_float, c_int64_t
  implicit none
  integer(c_int64_t), value :: segments
  integer(c_int64_t), value :: n
  integer(c_int64_t), intent(in) :: first(segments + 1)
  real(c_float), intent(in) :: x(n)
  real(c_float), intent(out) :: out(segments)
  real(c_float), value :: start
  integer(c_int64_t) :: s

  do s = 1, segments
    out(s) = max(start, maxval(x(first(s) + 1:first(s + 1))))
  end do
end subroutine segment_max
