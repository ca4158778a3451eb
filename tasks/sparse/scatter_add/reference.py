"""Reference of scatter_add: y[index[e]] += values[e], repeated places included."""

import numpy as np


def scatter_add(index, values, y, n, count):
    """Write the sums over y."""
    y += np.bincount(index, weights=values, minlength=n)


def magnitude(index, values, y, n, count):
    """Write each place's sum of magnitudes times the root of how many terms it has, which `reduction` cannot name."""
    np.abs(y, out=y)
    scatter_add(index, np.abs(values), y, n, count)
    y *= np.sqrt(1 + np.bincount(index, minlength=n))
