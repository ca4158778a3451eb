/* kernel: spmv_csr
   outcome: solved

   Brackets and braces as digraphs, operators as words. */
%:include <iso646.h>
%:include <stdint.h>
%:define JOINED(a, b) a %:%: b

void JOINED(spmv_, csr)(const int64_t *row_ptr, const int32_t *col_idx, const float *values, const float *x, float *y,
                        int64_t rows, int64_t cols, int64_t nnz) <%
  for (int64_t r = 0; r < rows; r++) <%
    double sum = 0;
    for (int64_t e = row_ptr<:r:>; e < row_ptr<:r + 1:> and e < nnz; e++)
      if (col_idx<:e:> >= 0 and not (col_idx<:e:> >= cols)) sum += (double)values<:e:> * x<:col_idx<:e:>:>;
    y<:r:> = (float)sum;
  %>
%>
