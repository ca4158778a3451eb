"""Reference of topk: a stable sort of each row, largest first, cut off after k elements."""

import numpy as np


def topk(x, values, where, rows, cols, k):
    """Write the largest elements and their columns."""
    where[...] = np.argsort(-x, axis=1, kind="stable")[:, :k]
    values[...] = np.take_along_axis(x, where.astype(np.int64), axis=1)
