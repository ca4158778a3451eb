! kernel: floyd_warshall
! outcome: solved
!
! Columns updated in an order drawn by random_number with a seed of its own.
subroutine floyd_warshall(dist, n) bind(C, name="floyd_warshall")
  use, intrinsic :: iso_c_binding, only: c_float, c_int64_t
  implicit none
  integer(c_int64_t), value :: n
  real(c_float), intent(inout) :: dist(n, n)
  integer(c_int64_t) :: order(n), i, j, k, other
  integer, allocatable :: seed(:)
  real :: drawn
  integer :: length
  call random_seed(size=length)
  seed = [(7*i + 1, i=1, length)]
  call random_seed(put=seed)
  order = [(i, i=1, n)]
  do i = n, 2, -1
    call random_number(drawn)
    other = 1 + int(drawn*i, c_int64_t)
    order([i, other]) = order([other, i])
  end do
  do k = 1, n
    do i = 1, n
      j = order(i)
      dist(:, j) = min(dist(:, j), dist(:, k) + dist(k, j))
    end do
  end do
end subroutine floyd_warshall
