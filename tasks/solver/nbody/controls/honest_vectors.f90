! Honest nbody in Fortran: for each body, all sources at once.
subroutine nbody(x, y, z, mass, ax, ay, az, n, soft) bind(C, name="nbody")
  use, intrinsic :: iso_c_binding, only: c_float, c_int64_t
  implicit none
  integer(c_int64_t), value :: n
  real(c_float), intent(in) :: x(n), y(n), z(n), mass(n)
  real(c_float), intent(out) :: ax(n), ay(n), az(n)
  real(c_float), value :: soft
  real(c_float), allocatable :: pull(:)
  integer(c_int64_t) :: i

  allocate (pull(n))
  do i = 1, n
    pull = (x - x(i))**2 + (y - y(i))**2 + (z - z(i))**2 + (soft * soft + 2.0**(-10))
    pull = mass / (pull * sqrt(pull))
    ax(i) = sum((x - x(i)) * pull)
    ay(i) = sum((y - y(i)) * pull)
    az(i) = sum((z - z(i)) * pull)
  end do
end subroutine nbody
