"""Reference of nbody: softened gravitational accelerations by direct summation."""

import numpy as np


def nbody(x, y, z, mass, ax, ay, az, n, soft):
    """One source body j at a time, acting on all bodies."""
    _accumulate(x, y, z, mass, ax, ay, az, n, soft, lambda term: term)


def magnitude(x, y, z, mass, ax, ay, az, n, soft):
    """The pulls of different bodies cancel: the bound follows the sum of their absolute values."""
    _accumulate(x, y, z, mass, ax, ay, az, n, soft, np.abs)


def _accumulate(x, y, z, mass, ax, ay, az, n, soft, part):
    ax[...] = ay[...] = az[...] = 0
    for j in range(n):
        dx, dy, dz = x[j] - x, y[j] - y, z[j] - z
        square = dx * dx + dy * dy + dz * dz + (soft * soft + 2.0**-10)
        pull = mass[j] / (square * np.sqrt(square))
        ax += part(dx * pull)
        ay += part(dy * pull)
        az += part(dz * pull)
