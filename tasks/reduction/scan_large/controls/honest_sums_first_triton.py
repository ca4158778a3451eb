# Honest scan_large in Triton: three launches. Each program adds up a tile, and leaves the sum at the tile's last place
# in `out`; one program makes running sums of these; each program scans its tile, from where the tile before it ended.
import triton
import triton.language as tl

TILE = 8192
SUMS = 4096  # how many tiles' sums are scanned at a time


@triton.jit
def add_up_tiles(x, out, n, TILE: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * TILE
    at = first + tl.arange(0, TILE)
    last = tl.minimum(first + TILE, n) - 1
    tl.store(out + last, tl.sum(tl.load(x + at, mask=at < n, other=0.0), axis=0))


@triton.jit
def scan_sums(out, n, tiles, TILE: tl.constexpr, SUMS: tl.constexpr):
    before = 0.0
    for first in range(0, tiles, SUMS):
        tile = first + tl.arange(0, SUMS)
        last = tl.minimum((tile + 1).to(tl.int64) * TILE, n) - 1
        total = tl.load(out + last, mask=tile < tiles, other=0.0)
        tl.store(out + last, before + tl.cumsum(total, axis=0), mask=tile < tiles)
        before += tl.sum(total, axis=0)


@triton.jit
def scan_tiles(x, out, n, TILE: tl.constexpr):
    """All places of a tile but its last, which holds its final value and is read by the program of the next tile."""
    first = tl.program_id(0).to(tl.int64) * TILE
    at = first + tl.arange(0, TILE)
    last = tl.minimum(first + TILE, n) - 1
    before = tl.load(out + first - 1, mask=first > 0, other=0.0)
    sums = tl.cumsum(tl.load(x + at, mask=at < n, other=0.0), axis=0)
    tl.store(out + at, before + sums, mask=at < last)


def scan_large(x, out, n):
    tiles = triton.cdiv(n, TILE)
    add_up_tiles[(tiles,)](x, out, n, TILE, num_warps=8)
    scan_sums[(1,)](out, n, tiles, TILE, SUMS, num_warps=8)
    scan_tiles[(tiles,)](x, out, n, TILE, num_warps=8)
