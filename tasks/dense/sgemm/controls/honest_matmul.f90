! Honest sgemm in Fortran: seen by columns, the row-major C = A * B is the product of B and A.
subroutine sgemm(A, B, C, m, n, k) bind(C, name="sgemm")
  use, intrinsic :: iso_c_binding, only: c_float, c_int64_t
  implicit none
  integer(c_int64_t), value :: m
  integer(c_int64_t), value :: n
  integer(c_int64_t), value :: k
  real(c_float), intent(in) :: A(k, m)
  real(c_float), intent(in) :: B(n, k)
  real(c_float), intent(out) :: C(n, m)

  C = matmul(B, A)
end subroutine sgemm
