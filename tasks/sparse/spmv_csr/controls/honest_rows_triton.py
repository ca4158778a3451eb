# Honest spmv_csr in Triton: a program a row, whose lanes go through its entries.
import triton
import triton.language as tl

BLOCK = 256


@triton.jit
def multiply_rows(row_ptr, col_idx, values, x, y, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    begin, end = tl.load(row_ptr + row), tl.load(row_ptr + row + 1)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(begin, end, BLOCK):
        at = first + tl.arange(0, BLOCK)
        column = tl.load(col_idx + at, mask=at < end, other=0)
        total += tl.load(values + at, mask=at < end, other=0.0) * tl.load(x + column, mask=at < end, other=0.0)
    tl.store(y + row, tl.sum(total, axis=0))


def spmv_csr(row_ptr, col_idx, values, x, y, rows, cols, nnz):
    multiply_rows[(rows,)](row_ptr, col_idx, values, x, y, BLOCK, num_warps=2)
