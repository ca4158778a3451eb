# Baseline of rmsnorm: a program a row, which adds up squares, then scales.
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def normalise_rows(x, weight, out, cols, eps, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * cols
    lanes = tl.arange(0, BLOCK)

    squares = 0.0
    for first in range(0, cols, BLOCK):
        value = tl.load(x + start + first + lanes, mask=first + lanes < cols, other=0.0)
        squares += tl.sum(value * value, axis=0)
    scale = tl.div_rn(1.0, tl.sqrt_rn(squares / cols + eps))

    for first in range(0, cols, BLOCK):
        inside = first + lanes < cols
        value = tl.load(x + start + first + lanes, mask=inside)
        factor = tl.load(weight + first + lanes, mask=inside)
        tl.store(out + start + first + lanes, value * scale * factor, mask=inside)


def rmsnorm(x, weight, out, rows, cols, eps):
    normalise_rows[(rows,)](x, weight, out, cols, eps, BLOCK)
