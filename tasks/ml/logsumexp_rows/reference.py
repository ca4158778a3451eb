"""Reference of logsumexp_rows: the row's maximum plus the logarithm of the sum of exponentials relative to it."""

import numpy as np


def logsumexp_rows(x, out, rows, cols):
    """Write the log-sum-exp of every row."""
    top = x.max(axis=1)
    out[...] = top + np.log(np.exp(x - top[:, np.newaxis]).sum(axis=1))


def magnitude(x, out, rows, cols):
    """Write 1 + the mean of |x - max| under the softmax, and |expected| without the sum's share of the bound.

    Rounding x - max changes its exponential by |x - max| units, so its share of the sum weighs in by that much; the
    sum's own relative error is an absolute one of its logarithm. The last addition rounds the result once.
    """
    below = x.max(axis=1, keepdims=True) - x
    weight = np.exp(-below)
    spread = (weight * below).sum(axis=1) / weight.sum(axis=1)
    logsumexp_rows(x, out, rows, cols)
    out[...] = 1 + spread + np.abs(out) / np.sqrt(cols)
