"""Reference of prefix_sum: inclusive scan."""

import numpy as np


def prefix_sum(x, out, n):
    """Write the running sums."""
    np.cumsum(x, out=out)


def magnitude(x, out, n):
    """Write the running sums of |x|."""
    np.cumsum(np.abs(x), out=out)
