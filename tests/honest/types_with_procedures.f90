! kernel: softmax_rows
! outcome: solved
!
! Derived types with procedures bound to them, an abstract parent, a generic name, a class, a procedure pointer.
module softmax_types
  use, intrinsic :: iso_c_binding, only: c_float, c_double
  implicit none
  private
  type, abstract, public :: row_map
  contains
    procedure(map_of), deferred :: applied
    generic :: operator(.of.) => applied
  end type row_map
  abstract interface
    function map_of(self, row) result(mapped)
      import :: row_map, c_double
      class(row_map), intent(in) :: self
      real(c_double), intent(in) :: row(:)
      real(c_double) :: mapped(size(row))
    end function map_of
    pure real(c_double) function one_of(x)
      import :: c_double
      real(c_double), intent(in) :: x
    end function one_of
  end interface
  type, extends(row_map), public :: softmax_map
    procedure(one_of), pointer, nopass :: raised => exponential
  contains
    procedure :: applied => softmax_applied
  end type softmax_map
  public :: exponential
contains
  pure real(c_double) function exponential(x)
    real(c_double), intent(in) :: x
    exponential = exp(x)
  end function exponential

  function softmax_applied(self, row) result(mapped)
    class(softmax_map), intent(in) :: self
    real(c_double), intent(in) :: row(:)
    real(c_double) :: mapped(size(row)), top
    integer :: i
    top = maxval(row)
    do i = 1, size(row)
      mapped(i) = self%raised(row(i) - top)
    end do
    mapped = mapped/sum(mapped)
  end function softmax_applied
end module softmax_types

subroutine softmax_rows(x, out, rows, cols) bind(C, name="softmax_rows")
  use, intrinsic :: iso_c_binding, only: c_float, c_double, c_int64_t
  use softmax_types
  implicit none
  integer(c_int64_t), value :: rows, cols
  real(c_float), intent(in) :: x(cols, rows)
  real(c_float), intent(out) :: out(cols, rows)
  class(row_map), allocatable :: map
  integer(c_int64_t) :: r
  allocate (softmax_map :: map)
  do r = 1, rows
    select type (map)
    type is (softmax_map)
      out(:, r) = real(map .of. real(x(:, r), c_double), c_float)
    end select
  end do
end subroutine softmax_rows
