"""
kernel: logsumexp_rows
outcome: solved

Closures, a cache of tables that depend on nothing but a size, functools.reduce and partial.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Row: TypeAlias = NDArray[np.float32]
LOG_2: Final = math.log(2)


@functools.lru_cache(maxsize=4)
def powers(count: int) -> NDArray[np.float64]:
    """2^-i for i below count: the same for every input."""
    return np.ldexp(1.0, -np.arange(count))


@functools.cache
def total_below(count: int) -> Callable[[NDArray[np.float64]], float]:
    def total(below: NDArray[np.float64]) -> float:
        whole = np.minimum(below // LOG_2, count - 1).astype(int)
        return float(np.sum(powers(count)[whole] * np.exp(whole * LOG_2 - below)))

    return total


def logsumexp_rows(x: NDArray[np.float32], out: Row, rows: int, cols: int) -> None:
    total = total_below(1000)
    for r in range(rows):
        row = x[r].astype(np.float64)
        top = functools.reduce(max, row.tolist())
        out[r] = top + math.log(functools.partial(total)(top - row))
