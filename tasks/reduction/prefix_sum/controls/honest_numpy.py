"""Honest prefix_sum in NumPy: cumsum on float32."""

import numpy as np


def prefix_sum(x, out, n):
    np.cumsum(x, out=out)
