# Honest gauss_seidel2d in Triton: one launch an antidiagonal of tiles. A program takes its tile row by row. Within a
# row u[j] = u[j-1] / 4 + known[j], where `known` comes from the row above, as it is now, and from the old values to
# the east and south: a scan of such steps is the whole row at once. Powers of 1/4 are exact, so nothing is lost by it.
import triton
import triton.language as tl

HIGH, WIDE = 32, 128


@triton.jit
def both_steps(slope, known, next_slope, next_known):
    """Two steps u -> slope * u + known, one after the other, as one."""
    return slope * next_slope, next_slope * known + next_known


@triton.jit(do_not_specialize=["diagonal", "highest"])
def sweep_tiles(f, u, rows, cols, diagonal, highest, HIGH: tl.constexpr, WIDE: tl.constexpr):
    down = highest + tl.program_id(0)
    top, left = down * HIGH, (diagonal - down) * WIDE
    lanes = tl.arange(0, WIDE)
    j = left + lanes
    slope = tl.full((WIDE,), 0.25, tl.float32)
    at, end = tl.cast(top, tl.int64) * cols + j, tl.cast(rows, tl.int64) * cols
    north = tl.load(u + at - cols, mask=(at >= cols) & (j < cols), other=0.0)
    for _ in range(top, min(top + HIGH, rows)):
        west = tl.load(u + at - 1, mask=(lanes == 0) & (j > 0), other=0.0)
        east = tl.load(u + at + 1, mask=j + 1 < cols, other=0.0)
        south = tl.load(u + at + cols, mask=(at + cols < end) & (j < cols), other=0.0)
        known = 0.25 * (north + west + east + south + tl.load(f + at, mask=j < cols, other=0.0))
        _, north = tl.associative_scan((slope, known), axis=0, combine_fn=both_steps)
        tl.debug_barrier()  # all have read this row's old values
        tl.store(u + at, north, mask=j < cols)
        at += cols


def gauss_seidel2d(f, u, rows, cols):
    down, across = triton.cdiv(rows, HIGH), triton.cdiv(cols, WIDE)
    for diagonal in range(down + across - 1):
        highest, lowest = max(0, diagonal - across + 1), min(diagonal, down - 1)
        grid = (lowest - highest + 1,)
        sweep_tiles[grid](f, u, rows, cols, diagonal, highest, HIGH, WIDE, num_warps=1)
