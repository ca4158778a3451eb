"""Reference of gauss_seidel2d: a sweep in place by antidiagonals, whose points do not depend on each other."""

import numpy as np


def gauss_seidel2d(f, u, rows, cols):
    """Write one sweep over u."""
    width = cols + 2
    grid, force = np.zeros((rows + 2, width)), np.zeros((rows + 2, width))
    grid[1:-1, 1:-1], force[1:-1, 1:-1] = u, f
    flat, known = grid.ravel(), force.ravel()

    for diagonal in range(2, rows + cols + 1):
        top, bottom = max(1, diagonal - cols), min(rows, diagonal - 1)
        first, last = top * width + diagonal - top, bottom * width + diagonal - bottom

        def beside(shift, first=first, last=last):
            return slice(first + shift, last + shift + 1, width - 1)

        neighbours = flat[beside(-width)] + flat[beside(-1)] + flat[beside(1)] + flat[beside(width)]
        flat[beside(0)] = 0.25 * (neighbours + known[beside(0)])
    u[...] = grid[1:-1, 1:-1]


def magnitude(f, u, rows, cols):
    """Write the sweep over |u| and |f|: the sum of the magnitudes of the terms."""
    np.abs(u, out=u)
    gauss_seidel2d(np.abs(f), u, rows, cols)
