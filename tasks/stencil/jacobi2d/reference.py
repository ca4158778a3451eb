"""Reference of jacobi2d: five-point average inside, border copied."""

import numpy as np


def jacobi2d(x, out, rows, cols):
    """Write one sweep."""
    out[...] = x
    neighbours = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
    out[1:-1, 1:-1] = 0.2 * (x[1:-1, 1:-1] + neighbours)


def magnitude(x, out, rows, cols):
    """Write the sweep over |x|: the sum of the magnitudes of the terms."""
    jacobi2d(np.abs(x), out, rows, cols)
