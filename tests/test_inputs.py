"""Inputs: the native helper fills what NumPy draws, families keep their ranges, sizes meet every residue."""

import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels import TWICE, write_kernel

from bench import seeds
from bench.dtypes import numpy_dtype
from bench.inputs import Case, balanced_order, draw, edge_cases, fuzzed_cases, scalar_value, timed_sizes, words
from bench.judge.schemas import Preset
from bench.native import helper
from bench.task import INTEGER_FAMILIES, POINTER_FAMILIES, Argument, Family, Role, Task, load_task, select

SEED = bytes(range(32))
KEYS = st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
NATIVE = [family for family in Family if family not in POINTER_FAMILIES]
FLOATS = [family for family in NATIVE if family not in INTEGER_FAMILIES]
INTEGERS = [family for family in NATIVE if family in INTEGER_FAMILIES]
WIDE_KINDS = [*product(FLOATS, ("float32", "float64")), *product(INTEGERS, ("int32", "int64"))]
# Values near 1 are all 1 in bfloat16, and refused there.
SMALL_KINDS = [kind for kind in product(FLOATS, ("float16", "bfloat16")) if kind != (Family.NEAR_CONSTANT, "bfloat16")]
KINDS = [*WIDE_KINDS, *SMALL_KINDS]
RANGES = {
    Family.UNIFORM: (-1, 1 - 2**-23),
    Family.POSITIVE: (2**-24, 1),
    Family.NORMAL: (-4, 4),
    Family.SPIKED: (-1024, 1024),
    Family.WIDE: (-(2**12), 2**12),
    Family.NEAR_CONSTANT: (1 - 2**-10, 1 + 2**-10),
    Family.FEW: (-1, 1),
}


def argument(family: Family, dtype: str, role: str = "input") -> Argument:
    integer = family in INTEGER_FAMILIES
    shape = () if role == "scalar" else ("n",)
    return Argument(role=role, dtype=dtype, shape=shape, values=(family,), bound="n" if integer else None)


@pytest.mark.parametrize(("family", "dtype"), KINDS, ids=["-".join(kind) for kind in KINDS])
@given(key=KEYS, count=st.integers(1, 67), bound=st.integers(1, 2**31 - 1))
@settings(max_examples=40)
def test_the_helper_fills_what_numpy_draws(
    family: Family, dtype: str, key: tuple[int, int], count: int, bound: int
) -> None:
    filled = np.full(count + 1, 77, numpy_dtype(dtype))
    helper.fill(filled[:count], family.value, key, bound)
    expected = draw(argument(family, dtype), family, key, (count,), bound)
    assert filled[:count].tobytes() == expected.tobytes()
    assert filled[count] == 77


def test_the_helper_refuses_what_it_cannot_fill() -> None:
    with pytest.raises(ValueError, match="no family 'below' for dtype float32"):
        helper.fill(np.zeros(4, np.float32), "below", (1, 2), 4)


@pytest.mark.parametrize("family", FLOATS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_float_family_keeps_its_range(family: Family, dtype: str) -> None:
    values = draw(argument(family, dtype), family, (1, 2), (200_000,)).astype(np.float64)
    low, high = RANGES[family]
    assert low <= values.min() and values.max() <= high
    assert np.isfinite(values).all()
    assert np.array_equal(values, values.astype(np.float32)), "every value is exact in both widths"
    if family is Family.POSITIVE or family is Family.WIDE:
        assert np.abs(values).min() >= 2**-24
    if family in (Family.UNIFORM, Family.NORMAL, Family.FEW):
        assert abs(values.mean()) < 0.02
    if family is Family.NORMAL:
        assert values.std() == pytest.approx(1.1547, rel=0.01)
    if family is Family.FEW:
        assert len(np.unique(values)) == 9
    if family is Family.WIDE:
        exponents = np.floor(np.log2(np.abs(values)))
        assert (exponents.min(), exponents.max()) == (-20, 11)


@pytest.mark.parametrize(("family", "dtype"), SMALL_KINDS, ids=["-".join(kind) for kind in SMALL_KINDS])
def test_a_small_float_is_the_nearest_to_what_float32_holds(family: Family, dtype: str) -> None:
    wide, small = (draw(argument(family, name), family, (1, 2), (20_000,)) for name in ("float32", dtype))
    bits = np.abs(small).view(np.int16)
    beside = [np.maximum(bits + step, 0).astype(np.int16).view(small.dtype).astype(np.float64) for step in (-1, 0, 1)]
    below, here, above = (np.abs(values - np.abs(wide)) for values in beside)
    assert np.isfinite(beside[1]).all() and np.array_equal(np.signbit(small), np.signbit(wide))
    is_tie = (below == here) | (above == here)
    assert ((here <= below) & (here <= above)).all() and not (is_tie & (bits & 1)).any()


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("family", INTEGERS)
@pytest.mark.parametrize("bound", [1, 2, 10, 1000])
def test_an_integer_family_stays_below_its_bound(family: Family, dtype: str, bound: int) -> None:
    values = draw(argument(family, dtype), family, (3, 4), (50_000,), bound)
    assert values.min() == 0 and values.max() == bound - 1
    few = (values < 4).mean()
    if family is Family.SKEWED and bound == 1000:
        assert few == pytest.approx(0.75, abs=0.02)


@given(family=st.sampled_from(sorted(POINTER_FAMILIES)), key=KEYS, count=st.integers(2, 60), bound=st.integers(0, 500))
def test_row_pointers_are_those_of_a_matrix(family: Family, key: tuple[int, int], count: int, bound: int) -> None:
    pointers = draw(argument(family, "int64", "index"), family, key, (count,), bound)
    assert pointers.shape == (count,)
    assert (pointers[0], pointers[-1]) == (0, bound)
    assert (np.diff(pointers) >= 0).all()


def test_long_rows_hold_half_of_the_entries() -> None:
    pointers = draw(argument(Family.LONG_ROWS, "int64", "index"), Family.LONG_ROWS, (1, 2), (100_001,), 4_000_000)
    lengths = np.sort(np.diff(pointers))[::-1]
    assert lengths[:200].sum() == pytest.approx(2_000_000, rel=0.05)
    assert np.median(lengths) < 20


def everything(task: Task, seed: bytes) -> list[Case]:
    held_out = fuzzed_cases(task, seed, "held", 4)
    return [*edge_cases(task, seed, "verify"), *fuzzed_cases(task, seed, "verify"), *held_out]


@pytest.mark.parametrize("task", select("all"), ids=lambda task: str(task.name))
@pytest.mark.parametrize("number", range(3))
def test_fuzzed_sizes_meet_every_residue_and_stay_small(task: Task, number: int) -> None:
    cases = list(fuzzed_cases(task, bytes([number]) * 32, "verify"))
    for name, limit in task.size(Preset.S).items():
        values = [case.sizes[name] for case in cases]
        assert {value % 16 for value in values} == set(range(16))
        assert min(values) >= 1 and max(values) <= limit


@pytest.mark.parametrize("limit", [1, 5, 16, 17, 31, 32, 40])
def test_fuzzed_sizes_of_a_tiny_preset_stay_in_it(tmp_path: Path, limit: int) -> None:
    sizes = {preset: {"n": limit} for preset in ("S", "M", "L", "XL")}
    task = load_task(write_kernel(tmp_path, TWICE | {"sizes": sizes}))
    values = [case.sizes["n"] for case in fuzzed_cases(task, SEED, "verify")]
    assert min(values) >= 1 and max(values) <= limit
    assert len({value % 16 for value in values}) >= min(limit, 16) - (limit < 16)


def test_edge_cases_hold_every_edge_value_once() -> None:
    (task,) = select("spmv_csr")
    cases = list(edge_cases(task, SEED, "verify"))
    assert len(cases) == sum(map(len, task.manifest.edge.values()))
    for name, values in task.manifest.edge.items():
        assert set(values) <= {case.sizes[name] for case in cases}


@pytest.mark.parametrize("preset", Preset)
@pytest.mark.parametrize("name", ["axpy", "sgemm", "spmv_csr"])
def test_timed_sizes_are_at_least_three_quarters_of_the_preset(name: str, preset: Preset) -> None:
    (task,) = select(name)
    drawn = [timed_sizes(task, bytes([i]) * 32, preset, index) for i in range(20) for index in range(4)]
    for argument_name, limit in task.size(preset).items():
        values, multiple = [sizes[argument_name] for sizes in drawn], task.manifest.multiples.get(argument_name, 1)
        assert math.ceil(0.75 * limit) - multiple < min(values) and max(values) <= limit
        assert not any(value % multiple for value in values)
        assert len(set(values)) > 10 or limit // multiple < 40


def test_the_same_seed_gives_the_same_plan_and_another_another() -> None:
    (task,) = select("axpy")
    other = bytes([1]) * 32
    assert everything(task, SEED) == everything(task, bytes(SEED))
    assert [case.sizes for case in everything(task, SEED)] != [case.sizes for case in everything(task, other)]
    assert timed_sizes(task, SEED, Preset.XL, 0) != timed_sizes(task, SEED, Preset.XL, 1)


def values_of(task: Task, seed: bytes) -> set[bytes]:
    """All input arrays of 32 bytes or more that a request's correctness cases draw."""
    drawn: set[bytes] = set()
    for case in everything(task, seed):
        for name, each in task.arguments.items():
            if each.role is Role.INPUT:
                drawn.add(draw(each, case.family(each), case.key(seed, name), (8,)).tobytes())
    return drawn


def test_two_requests_never_share_values() -> None:
    (task,) = select("axpy")
    root = seeds.new_root()
    score, submit = (seeds.request_seed(root, "s.n0.p0.w0", grade_id) for grade_id in ("score", "submit"))
    assert not values_of(task, score) & values_of(task, submit)


def test_every_call_has_values_and_indices_of_its_own() -> None:
    (task,) = select("spmv_csr")
    calls = [Case("timed", f"i0.{number}", timed_sizes(task, SEED, Preset.S, 0)) for number in range(6)]

    def keys(name: str) -> set[Any]:
        return {case.key(SEED, name) for case in calls}

    assert len(keys("values")) == len(keys("x")) == len(keys("col_idx")) == len(keys("row_ptr")) == 6


def test_timed_inputs_take_the_first_family_and_cases_take_them_all() -> None:
    (task,) = select("axpy")
    x = task.arguments["x"]
    assert {case.family(x) for case in everything(task, SEED)} == set(x.values)
    assert Case("timed", "i0.0", {"n": 4}).family(x) is x.values[0]


@pytest.mark.parametrize(("family", "dtype"), WIDE_KINDS, ids=["-".join(kind) for kind in WIDE_KINDS])
def test_a_scalar_is_exact_in_its_dtype(family: Family, dtype: str) -> None:
    scalar = argument(family, dtype, "scalar")
    for number in range(20):
        value = scalar_value(Case("verify", f"f{number}", {"n": 9}), SEED, "a", scalar)
        assert np.array([value], dtype)[0] == value
        assert isinstance(value, int if dtype.startswith("int") else float)


@pytest.mark.parametrize(("runs", "kinds"), [(1, 2), (2, 2), (5, 18), (8, 50)])
def test_orders_within_an_input_are_random_but_balanced(runs: int, kinds: int) -> None:
    orders = [tuple(balanced_order(SEED, index, runs)) for index in range(200)]
    assert {sum(order) for order in orders[0::2]} == {runs // 2}
    assert {sum(order) for order in orders[1::2]} == {(runs + 1) // 2}
    assert len(set(orders)) >= kinds


def test_words_are_numpys_philox() -> None:
    generator = np.random.Generator(np.random.Philox(key=np.array([5, 6], np.uint64), counter=0))
    assert words((5, 6), 9).tolist() == generator.bit_generator.random_raw(9).tolist()
