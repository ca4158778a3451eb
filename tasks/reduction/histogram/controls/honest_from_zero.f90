! Honest histogram in Fortran: the counts are declared to start at 0, like the values that they count.
subroutine histogram(x, counts, n, bins) bind(C, name="histogram")
  use, intrinsic :: iso_c_binding, only: c_int32_t, c_int64_t
  implicit none
  integer(c_int64_t), value :: n
  integer(c_int64_t), value :: bins
  integer(c_int32_t), intent(in) :: x(n)
  integer(c_int32_t), intent(out) :: counts(0:bins - 1)
  integer(c_int64_t) :: i

  counts = 0
  do i = 1, n
    counts(x(i)) = counts(x(i)) + 1
  end do
end subroutine histogram
