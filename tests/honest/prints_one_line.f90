! kernel: axpy
! outcome: solved
!
! Prints one line, formats into a variable, and looks at what iso_fortran_env says.
subroutine axpy(x, y, out, n, a) bind(C, name="axpy")
  use, intrinsic :: iso_c_binding, only: c_float, c_int64_t
  use, intrinsic :: iso_fortran_env, only: output_unit, real32, compiler_version
  implicit none
  integer(c_int64_t), value :: n
  real(c_float), intent(in) :: x(n), y(n)
  real(c_float), intent(out) :: out(n)
  real(c_float), value :: a
  logical, save :: told = .false.
  character(len=60) :: line
  if (.not. told) then
    write (line, '(a, i0, a, es12.4)') 'axpy: n = ', n, ', a = ', a
    print '(a)', trim(line)
    write (output_unit, *) 'built by ', compiler_version()
    told = .true.
  end if
  out = real(a, real32)*x + y
end subroutine axpy
