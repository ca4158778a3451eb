# Honest spmv_csr_gpu in Triton: a program takes sixteen rows. The first entries of all of them are multiplied side by
# side; what is left of a long row is gone through with all lanes.
import triton
import triton.language as tl

ROWS, SHORT, BLOCK = 16, 32, 512


@triton.jit
def products(col_idx, values, x, at, inside):
    column = tl.load(col_idx + at, mask=inside, other=0)
    return tl.load(values + at, mask=inside, other=0.0) * tl.load(x + column, mask=inside, other=0.0)


@triton.jit
def multiply_rows(row_ptr, col_idx, values, x, y, rows, ROWS: tl.constexpr, SHORT: tl.constexpr, BLOCK: tl.constexpr):
    top = tl.program_id(0).to(tl.int64) * ROWS
    row = top + tl.arange(0, ROWS)
    begin = tl.load(row_ptr + row, mask=row < rows, other=0)
    end = tl.load(row_ptr + row + 1, mask=row < rows, other=0)
    at = begin[:, None] + tl.arange(0, SHORT)[None, :]
    total = tl.sum(products(col_idx, values, x, at, at < end[:, None]), axis=1)
    if tl.max(end - begin, axis=0) > SHORT:
        for this in range(top, tl.minimum(top + ROWS, rows)):
            rest, last = tl.load(row_ptr + this) + SHORT, tl.load(row_ptr + this + 1)
            if rest < last:
                sums = tl.zeros((BLOCK,), tl.float32)
                for first in range(rest, last, BLOCK):
                    along = first + tl.arange(0, BLOCK)
                    sums += products(col_idx, values, x, along, along < last)
                total += tl.where(row == this, tl.sum(sums, axis=0), 0.0)
    tl.store(y + row, total, mask=row < rows)


def spmv_csr_gpu(row_ptr, col_idx, values, x, y, rows, cols, nnz):
    grid = (triton.cdiv(rows, ROWS),)
    multiply_rows[grid](row_ptr, col_idx, values, x, y, rows, ROWS, SHORT, BLOCK, num_warps=4)
