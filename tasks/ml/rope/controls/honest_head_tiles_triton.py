# Honest rope in Triton: a program takes some heads of one token, which share what it reads of cosines and sines.
import triton
import triton.language as tl

HEADS, WIDE = 16, 64


@triton.jit
def turn(x, cosine, sine, out, heads, half, HEADS: tl.constexpr, WIDE: tl.constexpr):
    across, down = tl.cdiv(half, WIDE), tl.cdiv(heads, HEADS)
    block = tl.program_id(0)
    token = (block // (across * down)).to(tl.int64)
    i = (block % across * WIDE + tl.arange(0, WIDE))[None, :]
    h = (block // across % down * HEADS + tl.arange(0, HEADS))[:, None]
    along = tl.load(cosine + token * half + i, mask=i < half)
    askew = tl.load(sine + token * half + i, mask=i < half)
    at, inside = (token * heads + h) * 2 * half + i, (h < heads) & (i < half)
    low, high = tl.load(x + at, mask=inside), tl.load(x + at + half, mask=inside)
    tl.store(out + at, low * along - high * askew, mask=inside)
    tl.store(out + at + half, high * along + low * askew, mask=inside)


def rope(x, cosine, sine, out, tokens, heads, half):
    grid = (tokens * triton.cdiv(heads, HEADS) * triton.cdiv(half, WIDE),)
    turn[grid](x, cosine, sine, out, heads, half, HEADS, WIDE, num_warps=4)
