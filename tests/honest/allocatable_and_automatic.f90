! kernel: sgemm
! outcome: solved
!
! Allocatables that grow by assignment and move, automatic arrays, a status looked at instead of a stop.
subroutine sgemm(A, B, C, m, n, k) bind(C, name="sgemm")
  use, intrinsic :: iso_c_binding, only: c_float, c_double, c_int64_t
  implicit none
  integer(c_int64_t), value :: m, n, k
  real(c_float), intent(in) :: A(k, m), B(n, k)
  real(c_float), intent(out) :: C(n, m)
  real(c_double) :: sums(n)
  real(c_double), allocatable :: wide(:, :), kept(:, :), list(:)
  integer :: status
  integer(c_int64_t) :: i, p
  character(len=80) :: message
  allocate (wide(n, k), stat=status, errmsg=message)
  if (status /= 0) error stop 'no memory'
  wide = real(B, c_double)
  call move_alloc(from=wide, to=kept)
  list = [real(c_double) ::]
  do i = 1, m
    sums = 0
    list = real(A(:, i), c_double)
    list = [list, 0.0_c_double]
    do p = 1, size(list, kind=c_int64_t) - 1
      sums = sums + list(p)*kept(:, p)
    end do
    C(:, i) = real(sums, c_float)
  end do
  if (allocated(kept) .and. .not. allocated(wide)) deallocate (kept)
end subroutine sgemm
