# Honest softmax_rows in Triton: a program a row. One pass finds the maximum together with the sum of exponentials, of
# each lane first; a second one writes the quotients.
import triton
import triton.language as tl

BLOCK = 1024
LOWEST = -3.4e38  # finite: what is relative to it is never infinity minus infinity


@triton.jit
def softmax_each(x, out, cols, BLOCK: tl.constexpr, LOWEST: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * cols
    lanes = tl.arange(0, BLOCK)
    top = tl.full((BLOCK,), LOWEST, tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, cols, BLOCK):
        value = tl.load(x + start + first + lanes, mask=first + lanes < cols, other=-float("inf"))
        higher = tl.maximum(top, value)
        total = total * tl.exp(top - higher) + tl.exp(value - higher)
        top = higher
    highest = tl.max(top, axis=0)
    scale = tl.div_rn(1.0, tl.sum(total * tl.exp(top - highest), axis=0))
    for first in range(0, cols, BLOCK):
        inside = first + lanes < cols
        value = tl.load(x + start + first + lanes, mask=inside)
        tl.store(out + start + first + lanes, tl.exp(value - highest) * scale, mask=inside)


def softmax_rows(x, out, rows, cols):
    softmax_each[(rows,)](x, out, cols, BLOCK, LOWEST, num_warps=4)
