# Baseline of softmax_rows: a program a row; its maximum, the sum of its exponentials, and the quotients.
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def softmax_each(x, out, cols, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * cols
    lanes = tl.arange(0, BLOCK)

    top = -float("inf")
    for first in range(0, cols, BLOCK):
        value = tl.load(x + start + first + lanes, mask=first + lanes < cols, other=-float("inf"))
        top = tl.maximum(top, tl.max(value, axis=0))

    total = 0.0
    for first in range(0, cols, BLOCK):
        value = tl.load(x + start + first + lanes, mask=first + lanes < cols, other=-float("inf"))
        total += tl.sum(tl.exp(value - top), axis=0)

    for first in range(0, cols, BLOCK):
        inside = first + lanes < cols
        value = tl.load(x + start + first + lanes, mask=inside)
        tl.store(out + start + first + lanes, tl.div_rn(tl.exp(value - top), total), mask=inside)


def softmax_rows(x, out, rows, cols):
    softmax_each[(rows,)](x, out, cols, BLOCK)
