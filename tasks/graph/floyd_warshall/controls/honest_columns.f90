! Honest floyd_warshall in Fortran: a column of this array is a row of the graph's, so i and j change places.
subroutine floyd_warshall(dist, n) bind(C, name="floyd_warshall")
  use, intrinsic :: iso_c_binding, only: c_float, c_int64_t
  implicit none
  integer(c_int64_t), value :: n
  real(c_float), intent(inout) :: dist(n, n)
  real(c_float), allocatable :: via(:)
  integer(c_int64_t) :: i, k

  allocate (via(n))
  do k = 1, n
    via = dist(:, k)
    do i = 1, n
      dist(:, i) = min(dist(:, i), dist(k, i) + via)
    end do
  end do
end subroutine floyd_warshall
