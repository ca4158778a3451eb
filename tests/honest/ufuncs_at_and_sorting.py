"""
kernel: scatter_add
outcome: solved

One half by np.add.at, the other sorted by place and summed by reduceat; structured arrays and views in between.
"""

import numpy as np

ENTRY = np.dtype([("place", np.int32), ("value", np.float64)])


def scatter_add(index, values, y, n, count):
    half = count // 2
    sums = y.astype(np.float64)
    np.add.at(sums, index[:half], values[:half])
    entries = np.empty(count - half, ENTRY)
    entries["place"], entries["value"] = index[half:], values[half:]
    entries.sort(order="place", kind="stable")
    starts = np.flatnonzero(np.diff(entries["place"], prepend=-1))
    sums[entries["place"][starts]] += np.add.reduceat(entries["value"], starts)
    np.copyto(y, sums, casting="same_kind")
