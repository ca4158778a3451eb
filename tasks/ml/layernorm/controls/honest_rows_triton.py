# Honest layernorm in Triton: a program a row, which is read three times, after the first from a cache: for its mean,
# for its variance about that, and to be written.
import triton
import triton.language as tl

BLOCK = 2048


@triton.jit
def normalise_rows(x, weight, bias, out, cols, eps, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * cols
    lanes = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, cols, BLOCK):
        total += tl.load(x + start + first + lanes, mask=first + lanes < cols, other=0.0)
    mean = tl.sum(total, axis=0) / cols

    squares = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, cols, BLOCK):
        value = tl.load(x + start + first + lanes, mask=first + lanes < cols, other=0.0)
        deviation = tl.where(first + lanes < cols, value - mean, 0.0)
        squares += deviation * deviation
    scale = tl.rsqrt(tl.sum(squares, axis=0) / cols + eps)

    for first in range(0, cols, BLOCK):
        inside = first + lanes < cols
        value = tl.load(x + start + first + lanes, mask=inside)
        factor = tl.load(weight + first + lanes, mask=inside)
        shift = tl.load(bias + first + lanes, mask=inside)
        tl.store(out + start + first + lanes, (value - mean) * scale * factor + shift, mask=inside)


def layernorm(x, weight, bias, out, rows, cols, eps):
    normalise_rows[(rows,)](x, weight, bias, out, cols, eps, BLOCK, num_warps=8)
