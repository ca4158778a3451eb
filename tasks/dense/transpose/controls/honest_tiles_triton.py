# Honest transpose in Triton: a program a square tile, read and written along rows.
import triton
import triton.language as tl

TILE = 64


@triton.jit
def transpose_tiles(x, out, rows, cols, TILE: tl.constexpr):
    across = tl.cdiv(cols, TILE)
    top, left = tl.program_id(0) // across * TILE, tl.program_id(0) % across * TILE
    r = (top + tl.arange(0, TILE)).to(tl.int64)
    c = (left + tl.arange(0, TILE)).to(tl.int64)
    tile = tl.load(x + r[:, None] * cols + c[None, :], mask=(r[:, None] < rows) & (c[None, :] < cols))
    tl.store(out + c[:, None] * rows + r[None, :], tl.trans(tile), mask=(c[:, None] < cols) & (r[None, :] < rows))


def transpose(x, out, rows, cols):
    grid = (triton.cdiv(rows, TILE) * triton.cdiv(cols, TILE),)
    transpose_tiles[grid](x, out, rows, cols, TILE, num_warps=8)
