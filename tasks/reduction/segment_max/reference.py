"""Reference of segment_max: the largest of start and a segment's values."""

import numpy as np


def segment_max(first, x, out, segments, n, start):
    filled = first[1:] > first[:-1]
    out[...] = start
    out[filled] = np.maximum(start, np.maximum.reduceat(x, first[:-1][filled]))
