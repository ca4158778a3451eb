# Honest scatter_add in Triton: a program a block of values, an atomic addition each.
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def add_each(index, values, y, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    place = tl.load(index + at, mask=inside, other=0)
    tl.atomic_add(y + place, tl.load(values + at, mask=inside), mask=inside, sem="relaxed")


def scatter_add(index, values, y, n, count):
    add_each[(triton.cdiv(count, BLOCK),)](index, values, y, count, BLOCK, num_warps=4)
