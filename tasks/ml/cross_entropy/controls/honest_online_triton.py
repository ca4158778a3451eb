# Honest cross_entropy in Triton: a program a row, which is read once. Each lane keeps the largest logit that it has
# met, and its sum of exponentials relative to that.
import triton
import triton.language as tl

BLOCK = 2048
LOWEST = -3.4e38  # finite: what is relative to it is never infinity minus infinity


@triton.jit
def lose_each(logits, label, loss, classes, BLOCK: tl.constexpr, LOWEST: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    top = tl.full((BLOCK,), LOWEST, tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, classes, BLOCK):
        value = tl.load(logits + row * classes + first + lanes, mask=first + lanes < classes, other=-float("inf"))
        higher = tl.maximum(top, value)
        total = total * tl.exp(top - higher) + tl.exp(value - higher)
        top = higher
    highest = tl.max(top, axis=0)
    chosen = tl.load(logits + row * classes + tl.load(label + row))
    tl.store(loss + row, highest - chosen + tl.log(tl.sum(total * tl.exp(top - highest), axis=0)))


def cross_entropy(logits, label, loss, rows, classes):
    lose_each[(rows,)](logits, label, loss, classes, BLOCK, LOWEST, num_warps=8)
