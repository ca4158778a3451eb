! kernel: axpy
! outcome: solved
!
! Größe × Länge, 向量, Σ; words that would read files elsewhere: include 'passwd', #include "/etc/passwd", .incbin
! include "/etc/passwd"
!include '/etc/passwd'
subroutine axpy(x, y, out, n, a) bind(C, name="axpy")
  use, intrinsic :: iso_c_binding, only: c_float, c_int64_t ! it's not a literal: é
  implicit none
  integer(c_int64_t), value :: n
  real(c_float), intent(in) :: x(n), y(n)
  real(c_float), intent(out) :: out(n)
  real(c_float), value :: a
  integer :: include, open, system
  character(len=*), parameter :: told = 'it''s "included"! é' // "say ""include 'x'"" ! é" // &
    ! a comment between the lines: don't
    'Länge, open &
    &and größe continued' // ''
  include = len(told)
  open = 1
  system = 0
  if (index(told, "include '/etc/passwd'") > 0) include = 0
  out = a*x + (y + real(min(include, system), c_float)*open)
end subroutine axpy
