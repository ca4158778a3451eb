"""Honest histogram in NumPy: unbuffered additions at the values."""

import numpy as np


def histogram(x, counts, n, bins):
    counts[...] = 0
    np.add.at(counts, x, 1)
