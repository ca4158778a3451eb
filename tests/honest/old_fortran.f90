! kernel: segment_max
! outcome: solved
!
! Labels and jumps, a common block, equivalence, data, an arithmetic if: Fortran as it once was.
      SUBROUTINE SEGMENT_MAX(FIRST, X, OUT, SEGMENTS, N, START) BIND(C, NAME="segment_max")
      USE, INTRINSIC :: ISO_C_BINDING
      IMPLICIT REAL(C_FLOAT) (A-H, O-Z), INTEGER(C_INT64_T) (I-N)
      INTEGER(C_INT64_T), VALUE :: SEGMENTS, N
      INTEGER(C_INT64_T) FIRST(SEGMENTS + 1)
      REAL(C_FLOAT) X(N), OUT(SEGMENTS)
      REAL(C_FLOAT), VALUE :: START
      COMMON /SEGMENT_COURT/ BEST, KEPT
      EQUIVALENCE (FOUND, BEST)
      DATA IONE /1/
      DO 30 I = 1, SEGMENTS
      FOUND = START
      J = FIRST(I) + IONE
   10 IF (J - FIRST(I + 1)) 20, 20, 30
   20 IF (X(J) .GT. FOUND) FOUND = X(J); J = J + 1
      GOTO 10
   30 OUT(I) = BEST
      KEPT = STATEMENT_LIKE(N)
      CONTAINS
      INTEGER(C_INT64_T) FUNCTION STATEMENT_LIKE(M)
      INTEGER(C_INT64_T) M
      STATEMENT_LIKE = M
      RETURN
      END FUNCTION
      END SUBROUTINE
