"""Reference of scan_large: inclusive scan."""

import numpy as np


def scan_large(x, out, n):
    """Write the running sums."""
    np.cumsum(x, out=out)


def magnitude(x, out, n):
    """Write the running sums of |x|."""
    np.cumsum(np.abs(x), out=out)
