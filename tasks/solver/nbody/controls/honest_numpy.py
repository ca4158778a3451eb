"""Honest nbody in NumPy: blocks of bodies against all sources, summed by matrix products."""

import numpy as np

BLOCK = 64


def nbody(x, y, z, mass, ax, ay, az, n, soft):
    softening = np.float32(soft) ** 2 + np.float32(2.0**-10)
    for start in range(0, n, BLOCK):
        here = slice(start, start + BLOCK)
        differences = [source - source[here, np.newaxis] for source in (x, y, z)]
        square = sum(d * d for d in differences) + softening
        weight = 1 / (square * np.sqrt(square))
        for out, d in zip((ax, ay, az), differences, strict=True):
            out[here] = (d * weight) @ mass
