"""A seed and a size give input arrays; edge, fuzzed and timed sizes; the value families in NumPy and natively.

Every value is a map from one 64-bit word of a Philox4x64-10 stream through integers and powers of two, so that the
native helper (used on the judge's buffers) and NumPy (used to repeat a grade anywhere) agree bit for bit.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.dtypes import numpy_dtype
from bench.judge.schemas import Preset
from bench.seeds import stream_key
from bench.task import POINTER_FAMILIES, Argument, Family, Role, Sizes, Task

Words = NDArray[np.uint64]
# Timed sizes are drawn between this share of the preset's sizes and the whole.
TIMED_FROM = 0.75
RESIDUES = 16


def words(key: tuple[int, int], count: int) -> Words:
    """The first `count` words of the stream of `key`."""
    return np.random.Philox(key=np.array(key, np.uint64), counter=0).random_raw(count).astype(np.uint64)


def _centred(w: Words, shift: int, half: int) -> NDArray[np.float64]:
    return ((w >> np.uint64(shift)).astype(np.int64) - half).astype(np.float64)


def _normal(w: Words) -> NDArray[np.float64]:
    quarters = sum(((w >> np.uint64(s)) & np.uint64(0xFFFF)).astype(np.int64) for s in (0, 16, 32, 48))
    return np.asarray(quarters - 131070, np.float64) * 2.0**-15


def _wide(w: Words) -> NDArray[np.float64]:
    exponent = ((w >> np.uint64(1)) & np.uint64(31)).astype(np.int64) - 20
    mantissa = 1.0 + (w >> np.uint64(41)).astype(np.float64) * 2.0**-23
    return np.where(w & np.uint64(1), -1.0, 1.0) * np.ldexp(mantissa, exponent.astype(np.int32))


FLOAT_FAMILIES: dict[Family, Callable[[Words], NDArray[np.float64]]] = {
    # [-1, 1), multiples of 2^-23
    Family.UNIFORM: lambda w: _centred(w, 40, 1 << 23) * 2.0**-23,
    # (0, 1], multiples of 2^-24
    Family.POSITIVE: lambda w: _centred(w, 40, -1) * 2.0**-24,
    # sum of four uniforms (Irwin-Hall), mean 0, standard deviation 1.15, |x| < 4
    Family.NORMAL: _normal,
    # random sign, magnitude log-uniform in [2^-20, 2^12)
    Family.WIDE: _wide,
    # 1 +- 2^-10
    Family.NEAR_CONSTANT: lambda w: 1.0 + _centred(w, 50, 1 << 13) * 2.0**-23,
    # multiples of 1/4 in [-1, 1]: many ties
    Family.FEW: lambda w: (_centred((w >> np.uint64(32)) * np.uint64(9), 32, 4)) * 0.25,
    # normal, but one in 256 is 256 times as large: who looks at some values sees small ones alone
    Family.SPIKED: lambda w: _normal(w) * np.where(w & np.uint64(255), 1.0, 256.0),
}


def _below(w: Words, bound: int) -> NDArray[np.int64]:
    return (((w >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32)).astype(np.int64)


def _row_pointers(family: Family, key: tuple[int, int], count: int, bound: int) -> NDArray[np.int64]:
    """`count` ascending integers, the first 0 and the last `bound`; in `long_rows`, one in 512 of those between lies in
    the upper half: the rows of that half are some 500 times as long as the others, and hold as many entries."""
    stream = words(key, max(count - 2, 1))
    cuts = _below(stream, bound + 1)
    if family is Family.LONG_ROWS:
        cuts = np.where(stream & np.uint64(255), cuts >> 1, cuts)
    return np.concatenate([[0], np.sort(cuts)[: max(count - 2, 0)], [bound]])[-count:]


def draw(
    argument: Argument, family: Family, key: tuple[int, int], shape: tuple[int, ...], bound: int = 0
) -> NDArray[Any]:
    """Values of one argument in NumPy; `bound` is the exclusive upper bound of the integer families.

    Those of floats are exact in float32, and rounded to the nearest, ties to even, in smaller types.
    """
    count = math.prod(shape)
    assert argument.dtype is not None
    if family in POINTER_FAMILIES:
        return _row_pointers(family, key, count, bound).astype(argument.dtype)
    stream = words(key, count)
    if family in FLOAT_FAMILIES:
        values: NDArray[Any] = FLOAT_FAMILIES[family](stream)
    else:
        values = _below(stream, bound)
        if family is Family.SKEWED:
            values = np.where(stream & np.uint64(3), values & 3, values)
    return values.astype(numpy_dtype(argument.dtype)).reshape(shape)


@dataclass(frozen=True)
class Case:
    """One call's worth of inputs: where it stands in the plan, its sizes, and which family each argument takes.

    `call` keys its values, indices too: nothing that was learnt at one call holds at another. The twin of a case has
    the same values but for one element of one array: who looks at a few of them takes it for the same.
    """

    stage: str
    call: str
    sizes: dict[str, int]
    variant: int = 0
    twin: bool = False

    def family(self, argument: Argument) -> Family:
        return argument.values[self.variant % len(argument.values)]

    def key(self, seed: bytes, name: str) -> tuple[int, int]:
        """Philox key of one argument's values in this case."""
        return stream_key(seed, self.stage, self.call, name)


@dataclass(frozen=True)
class Touched:
    """What makes a case a twin: the element `at` (flat index) of one array, and the Philox key of its new value."""

    name: str
    at: int
    key: tuple[int, int]


def touched(task: Task, case: Case, seed: bytes) -> Touched | None:
    """The element that makes a case a twin; None where it is none, or where no array of the task holds values."""
    valued = [name for name, array in task.arrays.items() if array.role in (Role.INPUT, Role.INOUT)]
    if not case.twin or not valued:
        return None
    which, where = (int(word) for word in words(stream_key(seed, case.stage, case.call, "twin"), 2))
    name = valued[which % len(valued)]
    at = where % math.prod(task.shape(name, case.sizes))
    return Touched(name, at, stream_key(seed, case.stage, case.call, f"twin {name}"))


def scalar_value(case: Case, seed: bytes, name: str, argument: Argument) -> float | int:
    """Value of a scalar argument, exactly representable in its dtype."""
    bound = int(argument.bound(case.sizes)) if argument.bound else 0
    value: float | int = draw(argument, case.family(argument), case.key(seed, name), (1,), bound)[0].item()
    return value


def _integers(seed: bytes, stage: str, use: str, low: list[int], high: list[int]) -> list[int]:
    """One integer in each [low, high], all from one stream."""
    raw = words(stream_key(seed, stage, "sizes", use), len(low))
    return [lo + int(_below(raw[i : i + 1], hi - lo + 1)[0]) for i, (lo, hi) in enumerate(zip(low, high, strict=True))]


def edge_cases(task: Task, seed: bytes, stage: str) -> Iterator[Case]:
    """One case an edge value of each size, the other sizes small and random."""
    small = task.size(Preset.S)
    number = 0
    for name, values in task.manifest.edge.items():
        for value in values:
            drawn = _integers(seed, stage, f"edge{number}", [1] * len(small), [min(v, 24) for v in small.values()])
            sizes = dict(zip(small, drawn, strict=True)) | {name: value}
            yield Case(stage, f"e{number}", sizes, number)
            number += 1


def fuzzed_cases(task: Task, seed: bytes, stage: str, count: int = RESIDUES) -> Iterator[Case]:
    """Random sizes in [1, S], stratified so that `count` cases meet `count` residues modulo 16 in every size."""
    limits = task.size(Preset.S)
    strata = {
        name: np.argsort(words(stream_key(seed, stage, "residues", name), RESIDUES), kind="stable") for name in limits
    }
    for number in range(count):
        top = [max((limit - RESIDUES) // RESIDUES, 0) for limit in limits.values()]
        blocks = _integers(seed, stage, f"fuzz{number}", [0] * len(top), top)
        sizes = {
            name: min(block * RESIDUES + int(strata[name][number % RESIDUES]) or RESIDUES, limits[name])
            for name, block in zip(limits, blocks, strict=True)
        }
        yield Case(stage, f"f{number}", sizes, number)


def timed_sizes(task: Task, seed: bytes, preset: Preset, index: int) -> dict[str, int]:
    """Sizes of one timed input, each drawn in [TIMED_FROM, 1] x the preset, then rounded down to its multiple."""
    limits = task.size(preset)
    low = [math.ceil(TIMED_FROM * limit) for limit in limits.values()]
    drawn = dict(zip(limits, _integers(seed, "timed", f"input{index}", low, list(limits.values())), strict=True))
    multiples = task.manifest.multiples
    return {name: max(value - value % multiples.get(name, 1), 1) for name, value in drawn.items()}


def round_sizes(task: Task, preset: Preset) -> dict[str, int]:
    """The largest powers of two within the preset: sizes that random ones hardly ever hit, and users have every day."""
    return {name: 1 << (limit.bit_length() - 1) for name, limit in task.size(preset).items()}


def balanced_order(seed: bytes, index: int, runs: int) -> list[bool]:
    """Which pairs of timed input `index` the candidate goes first in: half of them, at random places.

    An odd pair goes to the candidate in every second input, so that over a grade neither side gains by its place.
    """
    places = np.argsort(words(stream_key(seed, "timed", "order", f"input{index}"), runs), kind="stable")
    first = (runs + index % 2) // 2
    return [bool(place < first) for place in places]


def sizes_text(sizes: Sizes) -> str:
    return ", ".join(f"{name}={value}" for name, value in sizes.items())
