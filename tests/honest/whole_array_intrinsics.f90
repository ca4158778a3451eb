! kernel: sgemm
! outcome: solved
!
! matmul, transpose, dot_product, reshape, spread, pack, cshift and array constructors.
subroutine sgemm(A, B, C, m, n, k) bind(C, name="sgemm")
  use, intrinsic :: iso_c_binding, only: c_float, c_double, c_int64_t
  implicit none
  integer(c_int64_t), value :: m, n, k
  real(c_float), intent(in) :: A(k, m), B(n, k)
  real(c_float), intent(out) :: C(n, m)
  real(c_double) :: left(m, k), right(k, n), product(m, n)
  integer(c_int64_t) :: i
  left = transpose(real(A, c_double))
  right = reshape(real(B, c_double), [k, n], order=[2, 1])
  product = matmul(left, right)
  product(1, :) = [(dot_product(left(1, :), right(:, i)), i=1, n)]
  if (all(shape(product) == [m, n]) .and. k == 1) product = spread(left(:, 1), 2, n)*spread(right(1, :), 1, m)
  product = cshift(cshift(product, 1, dim=1), -1, dim=1)
  C = reshape(pack(real(transpose(product), c_float), .true.), [n, m])
end subroutine sgemm
