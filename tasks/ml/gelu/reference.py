"""Reference of gelu: x / 2 * (1 + erf(x / sqrt(2)))."""

import math

import numpy as np

erf = np.vectorize(math.erf, otypes=[np.float64])


def gelu(x, out, n):
    out[...] = 0.5 * x * (1 + erf(x / math.sqrt(2)))


def magnitude(x, out, n):
    """1 + erf cancels for negative x: the bound follows the two terms, not their sum."""
    out[...] = 0.5 * np.abs(x) * (1 + np.abs(erf(x / math.sqrt(2))))
