# Honest axpy in Triton: a program a block of elements.
import triton
import triton.language as tl

BLOCK = 2048


@triton.jit
def scale_and_add(x, y, out, n, a, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, a * tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


def axpy(x, y, out, n, a):
    scale_and_add[(triton.cdiv(n, BLOCK),)](x, y, out, n, a, BLOCK, num_warps=8)
