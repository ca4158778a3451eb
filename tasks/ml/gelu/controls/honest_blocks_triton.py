# Honest gelu in Triton: a program a block of elements, Triton's own erf.
import triton
import triton.language as tl

BLOCK = 2048


@triton.jit
def gelu_each(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    value = tl.load(x + at, mask=inside, other=0.0)
    tl.store(out + at, 0.5 * value * (1.0 + tl.erf(value * 0.7071067811865476)), mask=inside)


def gelu(x, out, n):
    gelu_each[(triton.cdiv(n, BLOCK),)](x, out, n, BLOCK, num_warps=8)
