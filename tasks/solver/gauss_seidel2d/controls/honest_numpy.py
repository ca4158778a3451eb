"""Honest gauss_seidel2d in NumPy, float32: one antidiagonal at a time, on strided views of a padded grid."""

import numpy as np


def gauss_seidel2d(f, u, rows, cols):
    width = cols + 2
    grid = np.zeros((rows + 2, width), np.float32)
    grid[1:-1, 1:-1] = u
    force = np.pad(f, 1)
    flat, known = grid.reshape(-1), force.reshape(-1)
    quarter = np.float32(0.25)
    for diagonal in range(2, rows + cols + 1):
        top, bottom = max(1, diagonal - cols), min(rows, diagonal - 1)
        first, last = top * (width - 1) + diagonal, bottom * (width - 1) + diagonal
        terms = [flat[first + shift : last + shift + 1 : width - 1] for shift in (-width, -1, 1, width)]
        here = slice(first, last + 1, width - 1)
        flat[here] = quarter * (((terms[0] + terms[3]) + (terms[1] + terms[2])) + known[here])
    u[...] = grid[1:-1, 1:-1]
