# Honest logsumexp_rows in Triton: a program a row, which is read once. Each lane keeps the largest value that it has
# met, and its sum of exponentials relative to that.
import triton
import triton.language as tl

BLOCK = 1024
LOWEST = -3.4e38  # finite: what is relative to it is never infinity minus infinity


@triton.jit
def logsumexp_each(x, out, cols, BLOCK: tl.constexpr, LOWEST: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    top = tl.full((BLOCK,), LOWEST, tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, cols, BLOCK):
        value = tl.load(x + row * cols + first + lanes, mask=first + lanes < cols, other=-float("inf"))
        higher = tl.maximum(top, value)
        total = total * tl.exp(top - higher) + tl.exp(value - higher)
        top = higher
    highest = tl.max(top, axis=0)
    tl.store(out + row, highest + tl.log(tl.sum(total * tl.exp(top - highest), axis=0)))


def logsumexp_rows(x, out, rows, cols):
    logsumexp_each[(rows,)](x, out, cols, BLOCK, LOWEST, num_warps=4)
