# Honest topk in Triton: a program a row. Value and column become one integer, larger for what comes first; the next
# element is each time the one with the largest such integer below the last. After the first time a cache holds the row.
import triton
import triton.language as tl

BLOCK = 2048


@triton.jit
def keys_of(value, column):
    """Integers that order as values do, of equal ones (0 and -0 are equal) the lower column as the larger."""
    bits = tl.where(value == 0.0, 0.0, value).to(tl.int32, bitcast=True)
    rising = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    return (rising.to(tl.int64) << 32) | (0x7FFFFFFF - column).to(tl.int64)


@triton.jit
def largest_each(x, values, where, cols, kept, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    last = tl.full((), 0x7FFFFFFFFFFFFFFF, tl.int64)
    for place in range(0, kept):
        best = tl.full((BLOCK,), -0x8000000000000000, tl.int64)
        for first in range(0, cols, BLOCK):
            column = first + lanes
            key = keys_of(tl.load(x + row * cols + column, mask=column < cols, other=-float("inf")), column)
            best = tl.where((column < cols) & (key < last), tl.maximum(best, key), best)
        last = tl.max(best, axis=0)
        found = 0x7FFFFFFF - (last & 0x7FFFFFFF).to(tl.int32)
        tl.store(values + row * kept + place, tl.load(x + row * cols + found))
        tl.store(where + row * kept + place, found)


def topk(x, values, where, rows, cols, k):
    largest_each[(rows,)](x, values, where, cols, min(k, cols), BLOCK, num_warps=8)
