# Honest floyd_warshall in Triton: a tile's worth of intermediate vertices a round, in three launches. The first closes
# the tile of these vertices alone: paths of at most 2, 4, 8, ... edges within it. The second extends paths to and from
# that tile, the third all others; with the middle closed, each is one min-plus product of tiles.
import triton
import triton.language as tl

TILE = 32
DOUBLINGS = 5  # no shortest path within a tile has more than TILE edges


@triton.jit
def at_tile(n, row, column, TILE: tl.constexpr):
    """Offsets of a tile, and which of them lie in the matrix."""
    i = (row * TILE + tl.arange(0, TILE)).to(tl.int64)[:, None]
    j = (column * TILE + tl.arange(0, TILE)).to(tl.int64)[None, :]
    return i * n + j, (i < n) & (j < n)


@triton.jit
def relax(dist, n, row, column, middle, TILE: tl.constexpr):
    """The smaller of a tile and of what leads through the vertices of the middle tile; stored once all have read."""
    at, inside = at_tile(n, row, column, TILE)
    own = tl.load(dist + at, mask=inside, other=float("inf"))
    i = (row * TILE + tl.arange(0, TILE)).to(tl.int64)
    j = column * TILE + tl.arange(0, TILE)
    first = middle * TILE
    for k in range(first, min(first + TILE, n)):
        to = tl.load(dist + i * n + k, mask=i < n, other=float("inf"))
        onwards = tl.load(dist + tl.cast(k, tl.int64) * n + j, mask=j < n, other=float("inf"))
        own = tl.minimum(own, to[:, None] + onwards[None, :])
    tl.debug_barrier()
    tl.store(dist + at, own, mask=inside)
    tl.debug_barrier()


@triton.jit(do_not_specialize=["middle"])
def close_middle(dist, n, middle, TILE: tl.constexpr, DOUBLINGS: tl.constexpr):
    for _ in range(DOUBLINGS):
        relax(dist, n, middle, middle, middle, TILE)


@triton.jit(do_not_specialize=["middle"])
def relax_cross(dist, n, middle, tiles, TILE: tl.constexpr):
    """The row of tiles through the middle, then its column."""
    block = tl.program_id(0)
    other = block % tiles
    if other != middle:
        if block < tiles:
            relax(dist, n, middle, other, middle, TILE)
        else:
            relax(dist, n, other, middle, middle, TILE)


@triton.jit(do_not_specialize=["middle"])
def relax_others(dist, n, middle, tiles, TILE: tl.constexpr):
    row, column = tl.program_id(0) // tiles, tl.program_id(0) % tiles
    if (row != middle) & (column != middle):
        relax(dist, n, row, column, middle, TILE)


def floyd_warshall(dist, n):
    tiles = triton.cdiv(n, TILE)
    for middle in range(tiles):
        close_middle[(1,)](dist, n, middle, TILE, DOUBLINGS, num_warps=4)
        if tiles > 1:
            relax_cross[(2 * tiles,)](dist, n, middle, tiles, TILE, num_warps=4)
            relax_others[(tiles * tiles,)](dist, n, middle, tiles, TILE, num_warps=4)
