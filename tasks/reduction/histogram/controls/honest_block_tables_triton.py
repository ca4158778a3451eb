# Honest histogram in Triton: a program adds up the tables of many blocks of x, then adds its sum to the cleared counts.
# Where there are too many bins for that, every element is added to the counts themselves.
import triton
import triton.language as tl

BLOCK, MOST_PROGRAMS, MOST_BINS = 4096, 1024, 4096


@triton.jit
def clear(counts, bins, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(counts + at, tl.zeros((BLOCK,), tl.int32), mask=at < bins)


@triton.jit
def count_in_tables(x, counts, n, bins, BLOCK: tl.constexpr, TABLE: tl.constexpr):
    table = tl.zeros((TABLE,), tl.int32)
    first = tl.program_id(0).to(tl.int64) * BLOCK
    for start in range(first, n, tl.num_programs(0).to(tl.int64) * BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.load(x + at, mask=at < n, other=0)
        table += tl.histogram(value, TABLE, mask=at < n)
    place = tl.arange(0, TABLE)
    tl.atomic_add(counts + place, table, mask=(place < bins) & (table > 0), sem="relaxed")


@triton.jit
def count_in_place(x, counts, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=0)
    tl.atomic_add(counts + value, tl.full((BLOCK,), 1, tl.int32), mask=at < n, sem="relaxed")


def histogram(x, counts, n, bins):
    blocks = triton.cdiv(n, BLOCK)
    clear[(triton.cdiv(bins, BLOCK),)](counts, bins, BLOCK)
    if bins <= MOST_BINS:
        table = max(triton.next_power_of_2(bins), 64)
        count_in_tables[(min(blocks, MOST_PROGRAMS),)](x, counts, n, bins, BLOCK, table, num_warps=8)
    else:
        count_in_place[(blocks,)](x, counts, n, BLOCK, num_warps=8)
