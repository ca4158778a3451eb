# Honest argmax_rows in Triton: a program a row. Each lane keeps the first place of its largest value; of the lanes that
# hold the row's largest value, the smallest place wins.
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def argmax_each(x, out, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    best = tl.full((BLOCK,), -float("inf"), tl.float32)
    where = lanes
    for first in range(0, cols, BLOCK):
        value = tl.load(x + row * cols + first + lanes, mask=first + lanes < cols, other=-float("inf"))
        better = value > best
        best = tl.where(better, value, best)
        where = tl.where(better, first + lanes, where)
    largest = tl.max(best, axis=0)
    tl.store(out + row, tl.min(tl.where(best == largest, where, 0x7FFFFFFF), axis=0))


def argmax_rows(x, out, rows, cols):
    argmax_each[(rows,)](x, out, cols, BLOCK, num_warps=4)
