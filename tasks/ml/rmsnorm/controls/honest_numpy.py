"""Honest rmsnorm in NumPy: squares summed by einsum, then scaled in place."""

import numpy as np


def rmsnorm(x, weight, out, rows, cols, eps):
    square = np.einsum("rc,rc->r", x, x) / np.float32(cols)
    scale = np.float32(1) / np.sqrt(square + np.float32(eps))
    np.multiply(x, scale[:, np.newaxis], out=out)
    out *= weight
