"""
kernel: histogram
outcome: solved

Counts by collections.Counter, an array of the standard library, set operations and a deque of chunks.
"""

import array
import collections
import copy
import statistics


def histogram(x, counts, n, bins):
    chunks = collections.deque(x[first : first + 4096].tolist() for first in range(0, n, 4096))
    counted = collections.Counter()
    while chunks:
        counted.update(chunks.popleft())
    held = copy.deepcopy(counted)
    missing = set(range(bins)) - held.keys()
    table = array.array("i", (held.get(b, 0) for b in range(bins)))
    assert not any(table[b] for b in missing)
    assert statistics.fmean(table) * bins == n or abs(statistics.fmean(table) * bins - n) < 1
    counts[:] = table
