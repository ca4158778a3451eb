"""
kernel: rmsnorm
outcome: solved

Parts of NumPy off the main road: linalg, masked arrays, polynomials, a transform, apply_along_axis, memory views.
"""

import numpy as np
import numpy.linalg as la
from numpy import ma
from numpy.polynomial import Polynomial

SQUARE = Polynomial([0, 0, 1])


def rmsnorm(x, weight, out, rows, cols, eps):
    wide = x.astype(np.float64)
    squares = ma.masked_array(SQUARE(wide), mask=False).sum(axis=1).data
    norms = np.apply_along_axis(la.norm, 1, wide)
    assert np.allclose(np.sqrt(squares), norms)
    assert np.allclose(np.abs(np.fft.fft(wide, axis=1)[:, 0]), np.abs(wide.sum(axis=1)), atol=1e-6 * np.abs(wide).max())
    scales = 1 / np.sqrt(norms**2 / cols + float(eps))
    view = memoryview(out).cast("B")
    view[:] = (wide * scales[:, np.newaxis] * weight).astype(np.float32).tobytes()
