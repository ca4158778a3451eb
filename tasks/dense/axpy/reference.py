"""Reference of axpy: out = a * x + y."""

import numpy as np


def axpy(x, y, out, n, a):
    """Write a * x + y."""
    out[...] = a * x + y


def magnitude(x, y, out, n, a):
    """Write |a * x| + |y|: both terms round on their own when the product is not fused."""
    out[...] = np.abs(a * x) + np.abs(y)
