! kernel: nbody
! outcome: solved
!
! OpenMP directives and conditional lines, and the module of its runtime.
subroutine nbody(x, y, z, mass, ax, ay, az, n, soft) bind(C, name="nbody")
  use, intrinsic :: iso_c_binding, only: c_float, c_double, c_int64_t
  !$ use omp_lib, only: omp_get_max_threads, omp_get_thread_num
  implicit none
  integer(c_int64_t), value :: n
  real(c_float), intent(in) :: x(n), y(n), z(n), mass(n)
  real(c_float), intent(out) :: ax(n), ay(n), az(n)
  real(c_float), value :: soft
  integer(c_int64_t) :: i
  integer :: threads, me
  real(c_double) :: d(3, n), pull(n), floor_square
  threads = 1
  !$ threads = omp_get_max_threads()
  floor_square = real(soft, c_double)**2 + 2.0_c_double**(-10)
  !$omp parallel do default(shared) private(d, pull, me) schedule(dynamic) num_threads(min(threads, 2))
  do i = 1, n
    me = 0
    !$ me = omp_get_thread_num()
    d(1, :) = real(x, c_double) - x(i)
    d(2, :) = real(y, c_double) - y(i)
    d(3, :) = real(z, c_double) - z(i)
    pull = sum(d*d, dim=1) + floor_square
    pull = mass/(pull*sqrt(pull)) + 0*me
    ax(i) = real(sum(d(1, :)*pull), c_float)
    ay(i) = real(sum(d(2, :)*pull), c_float)
    az(i) = real(sum(d(3, :)*pull), c_float)
  end do
  !$omp end parallel do
end subroutine nbody
