! kernel: histogram
! outcome: solved
!
! Modules of its own in front of the entry point, one using the other, with parameters, state and a submodule.
module counting_kinds
  use, intrinsic :: iso_c_binding, only: index_kind => c_int64_t, count_kind => c_int32_t
  implicit none
  private
  public :: index_kind, count_kind
  integer, parameter, public :: lanes = 4
end module counting_kinds

module counting
  use counting_kinds
  implicit none
  private
  integer(index_kind), save :: calls = 0
  public :: count_into, calls
  interface
    module subroutine count_into(x, tables)
      integer(count_kind), intent(in) :: x(:)
      integer(count_kind), intent(inout) :: tables(0:, :)
    end subroutine count_into
  end interface
end module counting

submodule(counting) counting_body
contains
  module procedure count_into
    integer(index_kind) :: i
    integer :: lane
    calls = calls + 1
    do i = 1, size(x, kind=index_kind)
      lane = int(mod(i, int(lanes, index_kind))) + 1
      tables(x(i), lane) = tables(x(i), lane) + 1
    end do
  end procedure count_into
end submodule counting_body

subroutine histogram(x, counts, n, bins) bind(C, name="histogram")
  use counting_kinds
  use counting, only: count_into
  implicit none
  integer(index_kind), value :: n, bins
  integer(count_kind), intent(in) :: x(n)
  integer(count_kind), intent(out) :: counts(bins)
  integer(count_kind), allocatable :: tables(:, :)
  allocate (tables(0:bins - 1, lanes), source=0_count_kind)
  call count_into(x, tables)
  counts = sum(tables, dim=2)
end subroutine histogram
