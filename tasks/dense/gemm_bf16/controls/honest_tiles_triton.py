# Honest gemm_bf16 in Triton: a program a tile of C, on the matrix units. The tiles of eight rows are taken column by
# column, so that programs which run together share what they read of A and B.
import triton
import triton.language as tl

TILE_M, TILE_N, TILE_K, GROUP = 128, 128, 64, 8


@triton.jit
def multiply_tiles(
    A, B, C, m, n, k, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, GROUP: tl.constexpr
):
    down, across = tl.cdiv(m, TILE_M), tl.cdiv(n, TILE_N)
    first = tl.program_id(0) // (GROUP * across) * GROUP
    high = min(down - first, GROUP)
    within = tl.program_id(0) % (GROUP * across)
    rows = ((first + within % high) * TILE_M + tl.arange(0, TILE_M)).to(tl.int64)[:, None]
    columns = (within // high * TILE_N + tl.arange(0, TILE_N))[None, :]
    inner = tl.arange(0, TILE_K)
    from_a = A + rows * k + inner[None, :]
    from_b = B + inner[:, None].to(tl.int64) * n + columns
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    for done in range(0, k, TILE_K):
        a = tl.load(from_a, mask=(rows < m) & (done + inner[None, :] < k), other=0.0)
        b = tl.load(from_b, mask=(done + inner[:, None] < k) & (columns < n), other=0.0)
        total = tl.dot(a, b, total)
        from_a += TILE_K
        from_b += tl.cast(n, tl.int64) * TILE_K
    tl.store(C + rows * n + columns, total, mask=(rows < m) & (columns < n))


def gemm_bf16(A, B, C, m, n, k):
    grid = (triton.cdiv(m, TILE_M) * triton.cdiv(n, TILE_N),)
    multiply_tiles[grid](A, B, C, m, n, k, TILE_M, TILE_N, TILE_K, GROUP, num_warps=8)
