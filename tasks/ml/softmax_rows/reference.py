"""Reference of softmax_rows: exponentials of x minus its row's maximum, divided by their sum."""

import numpy as np


def softmax_rows(x, out, rows, cols):
    """Write the softmax of every row."""
    out[...] = np.exp(x - x.max(axis=1, keepdims=True))
    out /= out.sum(axis=1, keepdims=True)


def magnitude(x, out, rows, cols):
    """Write expected * (1 + |x - max|): rounding x - max changes its exponential by that factor.

    2^-102 times the unit roundoff is the smallest normal number: results below it may be flushed to zero.
    """
    below = x.max(axis=1, keepdims=True) - x
    softmax_rows(x, out, rows, cols)
    out *= 1 + below
    out += 2.0**-102
