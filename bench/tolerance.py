"""When an output is close enough: a bound an element from the arithmetic, and the comparison against an oracle."""

import math
from dataclasses import dataclass

import numpy as np

from bench.dtypes import FLOATS
from bench.runner.memory import HOST, Array, Memory
from bench.task import Sizes, Task


@dataclass(frozen=True)
class Bound:
    """|got - expected| <= factor * magnitude + floor passes.

    factor = tolerance * u * sqrt(l) with u the unit roundoff and l the reduction length: rounding errors of a
    sum of l terms grow like sqrt(l) u times the sum of magnitudes (Higham and Mary, SIAM J. Sci. Comput. 41,
    2019). The floor is what l operations can lose to underflow. Both are those of the output's type, or of the one
    that intermediate values may be kept in, whichever is coarser.
    """

    factor: float
    floor: float


def bound(task: Task, dtype: str, sizes: Sizes) -> Bound:
    """Bound of one output dtype at the given sizes; integers have none."""
    if dtype not in FLOATS:
        return Bound(0.0, 0.0)
    kept_in = [FLOATS[name] for name in (dtype, task.manifest.intermediates) if name]
    length = max(float(task.manifest.reduction(sizes)), 1.0)
    factor = task.manifest.tolerance * max(kept.unit for kept in kept_in) * math.sqrt(length)
    return Bound(factor, task.manifest.tolerance * length * max(kept.smallest for kept in kept_in))


@dataclass(frozen=True)
class Oracle:
    """Expected outputs by argument name, and their magnitudes where |expected| is not the scale of the error.

    Floats are float64, integers have the output's own dtype.
    """

    expected: dict[str, Array]
    magnitude: dict[str, Array]


@dataclass(frozen=True)
class Mismatch:
    """The first element of an output that is out of bounds."""

    output: str
    index: tuple[int, ...]
    got: float | int
    expected: float | int
    bound: float
    count: int


def first_mismatch(
    task: Task, sizes: Sizes, got: dict[str, Array], oracle: Oracle, memory: Memory = HOST
) -> Mismatch | None:
    """Compare every output in full; None when all elements of all outputs are within their bounds."""
    for name, values in got.items():
        limit = bound(task, values.dtype.name, sizes)
        expected, magnitude = oracle.expected[name], oracle.magnitude.get(name)
        found = memory.compare(values, expected, magnitude, limit.factor, limit.floor)
        if found.count:
            where = np.unravel_index(found.first, values.shape)
            gave, wanted, scale = (
                memory.seen(array.reshape(-1)[found.first : found.first + 1])[0].item()
                for array in (values, expected, expected if magnitude is None else magnitude)
            )
            return Mismatch(
                output=name,
                index=tuple(int(i) for i in where),
                got=gave,
                expected=wanted,
                bound=limit.factor * abs(float(scale)) + limit.floor,
                count=found.count,
            )
    return None
