! Honest prefix_sum in Fortran: sums within blocks first, then each block is raised by what came before it.
module prefix_blocks
  use, intrinsic :: iso_c_binding, only: c_float, c_int64_t
  implicit none
  integer(c_int64_t), parameter :: block_size = 64
contains
  pure subroutine running(x, out)
    real(c_float), intent(in) :: x(:)
    real(c_float), intent(out) :: out(:)
    integer :: i

    out(1) = x(1)
    do i = 2, size(x)
      out(i) = out(i - 1) + x(i)
    end do
  end subroutine running
end module prefix_blocks

subroutine prefix_sum(x, out, n) bind(C, name="prefix_sum")
  use prefix_blocks
  implicit none
  integer(c_int64_t), value :: n
  real(c_float), intent(in) :: x(n)
  real(c_float), intent(out) :: out(n)
  real(c_float) :: before
  integer(c_int64_t) :: first, last

  before = 0
  do first = 1, n, block_size
    last = min(first + block_size - 1, n)
    call running(x(first:last), out(first:last))
    out(first:last) = out(first:last) + before
    before = out(last)
  end do
end subroutine prefix_sum
