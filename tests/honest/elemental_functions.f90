! kernel: gelu
! outcome: solved
!
! An elemental function applied to a whole array, where and merge, and the C library's erff through an interface.
module gelu_elements
  use, intrinsic :: iso_c_binding, only: c_float
  implicit none
  interface
    pure real(c_float) function erf_of_c(x) bind(C, name="erff")
      import :: c_float
      real(c_float), value :: x
    end function erf_of_c
  end interface
  real(c_float), parameter :: root_half = 1/sqrt(2.0_c_float)
contains
  elemental real(c_float) function element(x) result(y)
    real(c_float), intent(in) :: x
    y = x/2*(1 + merge(erf_of_c(x*root_half), erf(x*root_half), x > 0))
  end function element
end module gelu_elements

subroutine gelu(x, out, n) bind(C, name="gelu")
  use, intrinsic :: iso_c_binding, only: c_float, c_int64_t
  use gelu_elements, only: element
  implicit none
  integer(c_int64_t), value :: n
  real(c_float), intent(in) :: x(n)
  real(c_float), intent(out) :: out(n)
  where (x == 0)
    out = x
  elsewhere
    out = element(x)
  end where
end subroutine gelu
