"""Honest argmax_rows in NumPy: the first place where a row equals its maximum."""

import numpy as np


def argmax_rows(x, out, rows, cols):
    for r in range(rows):
        out[r] = np.flatnonzero(x[r] == x[r].max())[0]
