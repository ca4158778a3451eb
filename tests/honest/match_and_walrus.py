"""
kernel: jacobi2d
outcome: solved

Which part of the grid a row is, by match; walrus, star expressions, slices as objects, an alias of a type.
"""

from typing import NamedTuple

import numpy as np

Grid = np.ndarray
Size = tuple[int, int]


class Part(NamedTuple):
    row: int
    size: Size


def neighbours(x: Grid, row: int) -> Grid:
    inner, west, east = slice(1, -1), slice(None, -2), slice(2, None)
    north, here, south = x[row - 1 : row + 2].astype(np.float64)
    return sum([north[inner], south[inner], *(here[part] for part in (west, inner, east))])


def jacobi2d(x: Grid, out: Grid, rows: int, cols: int) -> None:
    for row in range(rows):
        match Part(row, (rows, cols)):
            case Part(row=0) | Part(size=(_, 1 | 2)):
                out[row] = x[row]
            case Part(row=last, size=(count, _)) if last == count - 1:
                out[row] = x[row]
            case Part() as part if (total := neighbours(x, part.row)).size:
                out[row, 1:-1], (out[row, 0], *_, out[row, -1]) = total * 0.2, x[row]
            case _:
                raise AssertionError("no such part")
