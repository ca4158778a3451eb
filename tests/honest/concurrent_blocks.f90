! kernel: jacobi2d
! outcome: solved
!
! do concurrent with a mask, block constructs with arrays of their own, associate, named loops with exit and cycle.
subroutine jacobi2d(x, out, rows, cols) bind(C, name="jacobi2d")
  use, intrinsic :: iso_c_binding, only: c_float, c_int64_t
  implicit none
  integer(c_int64_t), value :: rows, cols
  real(c_float), intent(in) :: x(cols, rows)
  real(c_float), intent(out) :: out(cols, rows)
  integer(c_int64_t) :: i, j
  do concurrent(j=1:rows, i=1:cols, j == 1 .or. j == rows .or. i == 1 .or. i == cols)
    out(i, j) = x(i, j)
  end do
  each_row: do j = 1, rows
    if (j == 1) cycle each_row
    if (j == rows) exit each_row
    block
      real(c_float) :: total(cols)
      associate (north => x(:, j - 1), here => x(:, j), south => x(:, j + 1))
        total = north + here + south
        do concurrent(i=2:cols - 1)
          out(i, j) = 0.2_c_float*(total(i) + here(i - 1) + here(i + 1))
        end do
      end associate
    end block
  end do each_row
end subroutine jacobi2d
