# Honest attention_fwd in Triton: a program takes a block of one head's queries through all keys, a block at a time. It
# keeps each query's largest score, and sums relative to that, which shrink when a larger score comes.
import math

import triton
import triton.language as tl

QUERIES, KEYS = 128, 64


@triton.jit
def attend(q, k, v, out, seq, dim, scale, QUERIES: tl.constexpr, KEYS: tl.constexpr, DIM: tl.constexpr):
    """`scale` turns products into scores in units of log 2; DIM is dim or more, a power of two."""
    blocks = tl.cdiv(seq, QUERIES)
    head = (tl.program_id(0) // blocks).to(tl.int64) * seq * dim
    i = (tl.program_id(0) % blocks * QUERIES + tl.arange(0, QUERIES))[:, None]
    d = tl.arange(0, DIM)
    at = head + i.to(tl.int64) * dim + d[None, :]
    asked = tl.load(q + at, mask=(i < seq) & (d[None, :] < dim), other=0.0)
    top = tl.full((QUERIES,), -float("inf"), tl.float32)
    weight = tl.zeros((QUERIES,), tl.float32)
    total = tl.zeros((QUERIES, DIM), tl.float32)
    for first in range(0, seq, KEYS):
        j = first + tl.arange(0, KEYS)
        where = head + j.to(tl.int64)[:, None] * dim + d[None, :]
        inside = (j[:, None] < seq) & (d[None, :] < dim)
        score = tl.dot(asked, tl.trans(tl.load(k + where, mask=inside, other=0.0))) * scale
        score = tl.where(j[None, :] < seq, score, -float("inf"))
        higher = tl.maximum(top, tl.max(score, axis=1))
        shrink, share = tl.exp2(top - higher), tl.exp2(score - higher[:, None])
        weight = weight * shrink + tl.sum(share, axis=1)
        values = tl.load(v + where, mask=inside, other=0.0)
        total = tl.dot(share.to(tl.bfloat16), values, total * shrink[:, None])
        top = higher
    tl.store(out + at, total / weight[:, None], mask=(i < seq) & (d[None, :] < dim))


def attention_fwd(q, k, v, out, heads, seq, dim):
    scale = 1.0 / (math.sqrt(dim) * math.log(2.0))
    grid = (heads * triton.cdiv(seq, QUERIES),)
    attend[grid](q, k, v, out, seq, dim, scale, QUERIES, KEYS, max(triton.next_power_of_2(dim), 16), num_warps=8)
