"""The comparison: what passes, what is found first, and that its bound tells honest rounding from reduced precision."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels import TWICE, write_kernel
from numpy.typing import NDArray

from bench.dtypes import FLOATS, numpy_dtype
from bench.inputs import words
from bench.native import helper
from bench.task import load_task, select
from bench.tolerance import Bound, Oracle, bound, first_mismatch

INF, NAN = math.inf, math.nan
FLT_MAX = float(np.finfo(np.float32).max)
FLOAT16_MAX, BFLOAT16_MAX = 65504.0, 2.0**127 * (2 - 2**-7)
AXPY = select("axpy")[0]
SOFTMAX = select("softmax_rows")[0]


def passes(got: float, expected: float, dtype: str = "float32", factor: float = 1e-6) -> bool:
    found = helper.compare(np.array([got], numpy_dtype(dtype)), np.array([expected], np.float64), None, factor, 1e-30)
    assert found.first == (0 if found.count else -1)
    return found.count == 0


@pytest.mark.parametrize(
    ("got", "expected", "verdict"),
    [
        (1.0, 1.0, True),
        (1.0 + 2**-20, 1.0, True),
        (1.0 + 2**-19, 1.0, False),
        (-1.0, 1.0, False),
        (0.0, -0.0, True),
        (0.0, 1e-31, True),
        (0.0, 1e-20, False),
        (NAN, NAN, True),
        (NAN, 1.0, False),
        (1.0, NAN, False),
        (INF, NAN, False),
        (NAN, INF, False),
        (INF, INF, True),
        (-INF, INF, False),
        (-INF, -INF, True),
        (INF, 1.0, False),
        (FLT_MAX, INF, False),
        (INF, 1e39, True),
        (-INF, -1e39, True),
        (FLT_MAX, 1e39, False),
        (FLT_MAX, FLT_MAX, True),
        (INF, FLT_MAX, False),
    ],
)
def test_what_passes(got: float, expected: float, verdict: bool) -> None:
    assert passes(got, expected) is verdict


@pytest.mark.parametrize(
    ("got", "expected", "dtype", "verdict"),
    [
        (1.0, 1.0, "float16", True),
        (1.0, 1.0 + 2**-11, "float16", True),
        (1.0 + 2**-10, 1.0, "float16", False),
        (2**-24, 2**-24, "float16", True),
        (2**-24, 2**-23, "float16", False),
        (FLOAT16_MAX, FLOAT16_MAX, "float16", True),
        (INF, 65536.0, "float16", True),
        (FLOAT16_MAX, 65536.0, "float16", False),
        (1.0, 1.0 + 2**-8, "bfloat16", False),
        (1.0 + 2**-7, 1.0 + 2**-7, "bfloat16", True),
        (-1.0, 1.0, "bfloat16", False),
        (BFLOAT16_MAX, BFLOAT16_MAX, "bfloat16", True),
        (-INF, -3.4e38, "bfloat16", True),
        (INF, 1.0, "bfloat16", False),
        *((NAN, NAN, dtype, True) for dtype in ("float16", "bfloat16")),
        *((NAN, 1.0, dtype, False) for dtype in ("float16", "bfloat16")),
        *((-INF, INF, dtype, False) for dtype in ("float16", "bfloat16")),
    ],
)
def test_what_passes_in_16_bits(got: float, expected: float, dtype: str, verdict: bool) -> None:
    assert passes(got, expected, dtype, factor=2**-11) is verdict


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_an_oracle_reads_the_numbers_that_numpy_reads(dtype: str) -> None:
    kind = numpy_dtype(dtype)
    bits = np.arange(2**16, dtype=np.uint16) if kind.itemsize == 2 else words((1, 2), 2**16)
    values, wide = bits.view(kind), np.empty(bits.nbytes // kind.itemsize)
    helper.widen(values, wide)
    with np.errstate(invalid="ignore"):
        expected = values.astype(np.float64)
    assert np.array_equal(wide, expected, equal_nan=True) and np.array_equal(np.signbit(wide), np.signbit(expected))


def test_a_double_holds_what_overflows_a_float() -> None:
    assert passes(1e39, 1e39, "float64")
    assert not passes(INF, 1e39, "float64")


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_integers_are_exact(dtype: str) -> None:
    expected = np.arange(7, dtype=dtype) * (np.iinfo(dtype).max // 7)
    assert helper.compare(expected.copy(), expected).count == 0
    for position in range(7):
        got = expected.copy()
        got[position] ^= 1
        found = helper.compare(got, expected, None, 1.0, 1e9)
        assert (found.count, found.first) == (1, position)


def test_an_oracle_of_another_type_is_refused() -> None:
    with pytest.raises(ValueError, match="an oracle of dtype int64 cannot judge an output of dtype int32"):
        helper.compare(np.zeros(3, np.int32), np.zeros(3, np.int64))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("size", [1, 2, 3, 17, 64])
def test_each_element_is_looked_at(size: int, dtype: str) -> None:
    expected = np.linspace(1, 2, size).astype(numpy_dtype(dtype)).astype(np.float64)
    for position in range(size):
        got = (expected + (np.arange(size) >= position)).astype(numpy_dtype(dtype))
        found = helper.compare(got, expected, None, 1e-6, 0.0)
        assert (found.count, found.first) == (size - position, position)


@pytest.mark.parametrize("size", [255, 256, 257, 100_001])
def test_each_part_of_a_large_output_is_looked_at(size: int) -> None:
    expected = np.linspace(1, 2, size)
    for position in {0, 1, 127, 128, 254, size // 2, size - 2, size - 1}:
        got = expected.astype(np.float32)
        got[position] = NAN
        found = helper.compare(got, expected, None, 1e-6, 0.0)
        assert (found.count, found.first) == (1, position)


def test_a_magnitude_takes_the_place_of_the_expected_value() -> None:
    expected, magnitude = np.zeros(2), np.array([1.0, 100.0])
    found = helper.compare(np.array([0.01, 0.01]), expected, magnitude, 1e-3, 0.0)
    assert (found.count, found.first) == (1, 0)


def test_the_bound_grows_with_the_root_of_the_reduction() -> None:
    one, four = (bound(SOFTMAX, "float32", {"rows": 1, "cols": cols}) for cols in (256, 1024))
    assert four.factor == pytest.approx(2 * one.factor)
    assert one.factor == pytest.approx(SOFTMAX.manifest.tolerance * FLOATS["float32"].unit * 16)
    assert bound(SOFTMAX, "float64", {"rows": 1, "cols": 256}).factor == one.factor * 2**-29
    assert bound(SOFTMAX, "int32", {"rows": 1, "cols": 256}) == Bound(0, 0)


def test_the_bound_is_that_of_the_coarsest_type_on_the_way(tmp_path: Path) -> None:
    def factor(dtype: str, intermediates: str | None) -> float:
        kernel = TWICE | ({"intermediates": intermediates} if intermediates else {})
        return bound(load_task(write_kernel(tmp_path, kernel)), dtype, {"n": 4}).factor / 4

    assert factor("float16", None) == 2**-11 and factor("bfloat16", None) == 2**-8
    assert factor("float32", "bfloat16") == 2**-8 and factor("float32", "float16") == 2**-11
    assert factor("bfloat16", "float32") == 2**-8


@pytest.mark.parametrize("index", [(0, 0), (1, 0), (2, 4)])
def test_the_first_mismatch_says_where_and_by_how_much(index: tuple[int, int]) -> None:
    expected = np.full((3, 5), 0.5)
    got = expected.astype(np.float32)
    got[index] = 0.75
    found = first_mismatch(SOFTMAX, {"rows": 3, "cols": 5}, {"out": got}, Oracle({"out": expected}, {}))
    assert found is not None
    assert (found.output, found.index, found.got, found.expected, found.count) == ("out", index, 0.75, 0.5, 1)
    assert 0 < found.bound < 1e-6


def test_the_same_output_has_no_mismatch() -> None:
    expected = np.linspace(0, 1, 8)
    got = {"out": expected.astype(np.float32)}
    assert first_mismatch(AXPY, {"n": 8}, got, Oracle({"out": expected}, {"out": np.ones(8)})) is None


ROWS, LENGTH = 64, 512


def positive(key: int) -> NDArray[np.float32]:
    raw = (words((key, 1), ROWS * LENGTH) >> np.uint64(40)).astype(np.float32) * np.float32(2**-24)
    return raw.reshape(ROWS, LENGTH)


def bfloat16(values: NDArray[np.float32]) -> NDArray[np.float32]:
    bits = values.view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)).view(np.float32)


def sums(values: NDArray[np.float32], style: str) -> NDArray[Any]:
    """Row sums in float32: one after the other, backwards, in four lanes, or by NumPy's pairs."""
    if style == "pairs":
        return values.sum(axis=1, dtype=np.float32)
    order = values[:, ::-1] if style == "backwards" else values
    lanes = order.reshape(ROWS, -1, 4 if style == "lanes" else 1)
    return lanes.cumsum(axis=1, dtype=np.float32)[:, -1].sum(axis=1, dtype=np.float32)


@given(st.integers(0, 2**64 - 1))
@settings(max_examples=25)
def test_honest_sums_pass_and_reduced_precision_fails(key: int) -> None:
    values = positive(key)
    expected = values.astype(np.float64).sum(axis=1)
    limit = 4 * FLOATS["float32"].unit * math.sqrt(LENGTH)
    for style in ("forwards", "backwards", "lanes", "pairs"):
        assert helper.compare(sums(values, style), expected, None, limit).count == 0, style
    assert helper.compare(sums(bfloat16(values), "pairs"), expected, None, limit).count > 0
