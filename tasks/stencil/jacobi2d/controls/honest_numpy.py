"""Honest jacobi2d in NumPy: accumulates the neighbours in the output, float32 throughout."""

import numpy as np


def jacobi2d(x, out, rows, cols):
    np.copyto(out, x)
    inside = out[1:-1, 1:-1]
    for shifted in (x[:-2, 1:-1], x[2:, 1:-1], x[1:-1, :-2], x[1:-1, 2:]):
        np.add(inside, shifted, out=inside)
    np.multiply(inside, np.float32(0.2), out=inside)
