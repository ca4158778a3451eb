"""
kernel: sgemm
outcome: solved

The product by einsum over windows made of strides, and by matmul with an output of its own.
"""

import numpy as np
from numpy.lib.stride_tricks import as_strided, sliding_window_view


def sgemm(a, b, c, m, n, k):
    """c = a @ b, its upper half by einsum, the rest by matmul."""
    half = m // 2
    step, unit = a.strides
    blocks = as_strided(a, shape=(half, 1, k), strides=(step, step, unit), writeable=False)
    np.einsum("ibk,kj->ij", blocks, b, out=c[:half], dtype=np.float64, casting="same_kind")
    np.matmul(a[half:].astype(np.float64), b.astype(np.float64), out=(rest := np.empty((m - half, n))))
    c[half:] = rest
    assert sliding_window_view(np.arange(m + 1), 2).shape == (m, 2)
