! Honest gauss_seidel2d in Fortran: what does not depend on the row's own update first, then the recurrence.
subroutine gauss_seidel2d(f, u, rows, cols) bind(C, name="gauss_seidel2d")
  use, intrinsic :: iso_c_binding, only: c_float, c_int64_t
  implicit none
  integer(c_int64_t), value :: rows
  integer(c_int64_t), value :: cols
  real(c_float), intent(in) :: f(cols, rows)
  real(c_float), intent(inout) :: u(cols, rows)
  real(c_float), allocatable :: known(:)
  integer(c_int64_t) :: i, j

  allocate (known(cols))
  do i = 1, rows
    known = f(:, i)
    known(:cols - 1) = known(:cols - 1) + u(2:, i)
    if (i > 1) known = known + u(:, i - 1)
    if (i < rows) known = known + u(:, i + 1)
    u(1, i) = 0.25 * known(1)
    do j = 2, cols
      u(j, i) = 0.25 * (u(j - 1, i) + known(j))
    end do
  end do
end subroutine gauss_seidel2d
