! Honest scatter_add in Fortran: the indices count from 0, so y is declared to start there.
subroutine scatter_add(index, values, y, n, count) bind(C, name="scatter_add")
  use, intrinsic :: iso_c_binding, only: c_float, c_int32_t, c_int64_t
  implicit none
  integer(c_int64_t), value :: n
  integer(c_int64_t), value :: count
  integer(c_int32_t), intent(in) :: index(count)
  real(c_float), intent(in) :: values(count)
  real(c_float), intent(inout) :: y(0:n - 1)
  integer(c_int64_t) :: e

  do e = 1, count
    y(index(e)) = y(index(e)) + values(e)
  end do
end subroutine scatter_add
