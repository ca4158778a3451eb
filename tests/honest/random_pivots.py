"""
kernel: argmax_rows
outcome: solved

Quickselect with pivots from a seeded generator: which ones they are does not change the answer.
"""

import random

import numpy as np

ORDER = np.random.default_rng(7).permutation(1 << 10)


def first_largest(row, pivots):
    places = range(len(row))
    while len(places) > 1:
        pivot = row[pivots.choice(places)]
        higher = [c for c in places if row[c] > pivot]
        places = higher or [next(c for c in places if row[c] == pivot)]
    return places[0]


def argmax_rows(x, out, rows, cols):
    pivots = random.Random("a seed")
    for r in [r for r in ORDER if r < rows] if rows <= len(ORDER) else range(rows):
        out[r] = first_largest(x[r].tolist(), pivots)
