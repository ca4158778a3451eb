"""Credit, score and interval: worked examples, exact counts, an independent implementation, a simulation."""

import math
from itertools import combinations, product
from statistics import median

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from bench.measure.statistics import (
    TAIL,
    _below_quantile,
    credit,
    geometric_mean,
    hodges_lehmann,
    mann_whitney_less,
    relative_iqr,
)

ALPHA = 0.1
TIMES = st.floats(1.0, 1e9)


def splits(values: list[int]) -> list[tuple[list[int], list[int]]]:
    """Every way to deal ten values to two sides of five."""
    return [
        ([values[i] for i in chosen], [value for i, value in enumerate(values) if i not in chosen])
        for chosen in combinations(range(10), 5)
    ]


def test_the_worked_example_is_credited() -> None:
    found = credit([10, 11, 12, 13, 21], [20, 22, 24, 26, 12.5], ALPHA)
    assert found.ratio == found.raw == pytest.approx(1.833, abs=5e-4)
    assert found.p == pytest.approx(0.028, abs=5e-4)
    assert found.credited


def test_the_worked_score() -> None:
    assert geometric_mean([1.833, 1, 2, 1.5]) == pytest.approx(1.531, abs=5e-4)


def test_five_lost_comparisons_credit_and_six_do_not() -> None:
    by_losses = {sum(a > b for a in x for b in y): mann_whitney_less(x, y) for x, y in splits(list(range(10)))}
    assert by_losses[5] == pytest.approx(0.0754, abs=5e-5)
    assert by_losses[5] < ALPHA <= by_losses[6]
    assert by_losses[0] == pytest.approx(1 / 252)


def test_identical_code_is_credited_in_15_1_percent_of_inputs() -> None:
    found = [credit(x, y, ALPHA) for x, y in splits(list(range(1, 11)))]
    assert sum(each.credited for each in found) / len(found) == pytest.approx(38 / 252)
    assert pytest.approx(0.151, abs=5e-4) == 38 / 252
    assert all(each.ratio == 1 for each in found if not each.credited)


@given(st.lists(TIMES, min_size=2, max_size=16, unique=True), st.data())
def test_p_is_that_of_scipy(values: list[float], data: st.DataObject) -> None:
    cut = data.draw(st.integers(1, len(values) - 1))
    x, y = values[:cut], values[cut:]
    expected = scipy.stats.mannwhitneyu(x, y, alternative="less", method="exact").pvalue
    assert mann_whitney_less(x, y) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    "values",
    [[1] * 5 + [2] * 5, [1] * 9 + [2], [1, 1, 2, 2, 3, 3, 4, 4, 5, 5], [1, 2, 3, 4, 5, 6, 7, 8, 9, 9]],
    ids=["two-values", "one-differs", "pairs", "one-tie"],
)
def test_ties_never_make_credit_easier(values: list[int]) -> None:
    p_values = [mann_whitney_less(x, y) for x, y in splits(values)]
    for level in (0.01, 0.05, ALPHA):
        assert sum(p < level for p in p_values) / len(p_values) <= level


def test_equal_times_credit_nothing() -> None:
    found = credit([5] * 5, [5] * 5, ALPHA)
    assert (found.ratio, found.raw, found.credited) == (1, 1, False)


@given(st.lists(TIMES, min_size=5, max_size=5, unique=True), st.lists(TIMES, min_size=5, max_size=5, unique=True))
def test_swapping_the_sides_inverts_the_ratio(x: list[float], y: list[float]) -> None:
    there, back = credit(x, y, ALPHA), credit(y, x, ALPHA)
    assert there.ratio * back.ratio == pytest.approx(1)
    if there.raw != 1:
        assert there.p == back.p


@given(st.lists(TIMES, min_size=5, max_size=5), st.lists(TIMES, min_size=5, max_size=5), st.floats(0.01, 1))
def test_a_faster_candidate_never_scores_less(x: list[float], y: list[float], factor: float) -> None:
    before, after = credit(x, y, ALPHA), credit([value * factor for value in x], y, ALPHA)
    assert after.ratio >= before.ratio or math.isclose(after.ratio, before.ratio)
    assert after.raw == pytest.approx(median(y) / (median(x) * factor))


@pytest.mark.parametrize(
    ("times", "expected"),
    [([5], 0), ([10, 20], 5 / 15), ([1, 2, 3, 4, 5], 2 / 3), ([4, 1, 2, 3], 1.5 / 2.5)],
    ids=["one", "two", "five", "four-unsorted"],
)
def test_the_noise_of_one_side_is_its_quartiles_over_its_median(times: list[float], expected: float) -> None:
    assert relative_iqr(times) == pytest.approx(expected)


@pytest.mark.parametrize("ratio", [1e-300, 1e-5, 1e300])
def test_a_score_over_many_extreme_ratios_neither_overflows_nor_vanishes(ratio: float) -> None:
    assert geometric_mean([ratio] * 100_000) == pytest.approx(ratio)


def intervals(noise: float, effect: float, inputs: int, trials: int) -> list[tuple[float, float, float]]:
    """Intervals of simulated grades whose true ratio is `effect`, with Gaussian noise on log times."""
    draws = np.random.default_rng(20240229).normal(0, noise, (trials, 2, inputs, 5))
    times = np.exp(draws + np.linspace(0, 2, inputs)[:, np.newaxis])
    return [hodges_lehmann(c.tolist(), (effect * d).tolist()) for c, d in times]


@pytest.mark.parametrize(("inputs", "noise"), [*product((2, 4), (0.01, 0.3))])
def test_the_interval_covers_what_it_says(inputs: int, noise: float) -> None:
    effect = 1.7
    found = intervals(noise, effect, inputs, trials=1500)
    coverage = sum(low <= effect <= high for _, low, high in found) / len(found)
    assert 0.84 <= coverage <= 0.985
    assert median(centre for centre, _, _ in found) == pytest.approx(effect, rel=noise)


def test_identical_code_is_seldom_called_faster() -> None:
    found = intervals(0.05, 1.0, 4, trials=1500)
    assert sum(low > 1 for _, low, _ in found) / len(found) <= 0.07


@pytest.mark.parametrize("strata", [(2,), (5,), (3, 4), (5, 5)], ids=str)
def test_the_interval_cuts_where_all_signs_say(strata: tuple[int, ...]) -> None:
    """Every choice of signs is alike under the null; the statistic is the sum of the ranks within an input."""
    ranks = [rank for size in strata for rank in range(1, size + 1)]
    sums = [
        sum(rank for rank, sign in zip(ranks, signs, strict=True) if sign)
        for signs in product((0, 1), repeat=len(ranks))
    ]
    for tail in (0.01, TAIL, 0.3):
        at_most = [k for k in range(sum(ranks) + 1) if sum(found < k for found in sums) / len(sums) <= tail]
        assert _below_quantile(strata, tail) == max(at_most)


@pytest.mark.parametrize(
    ("logs", "centre", "half"),
    [
        # Two runs: the residuals' averages are -1, 0 and 1; widened by 3.
        pytest.param([[0, 2]], 1, 1 * 3, id="two-runs"),
        # One input of five: the cut is at the outermost average, 2; widened by 6 / 4.
        pytest.param([[0, 1, 2, 3, 4]], 2, 2 * 1.5, id="one-input"),
        # Two inputs: the sixth of the 30 averages from outside, 1.5.
        pytest.param([[-3, -1, 0, 1, 3], [-3.3, -1.1, 0, 1.1, 3.3]], 0, 1.5 * 1.5, id="two-inputs"),
    ],
)
def test_the_worked_interval(logs: list[list[float]], centre: float, half: float) -> None:
    found = hodges_lehmann(
        [[1] * len(values) for values in logs], [[2.0**value for value in values] for values in logs]
    )
    assert found == pytest.approx((2**centre, 2 ** (centre - half), 2 ** (centre + half)))


RUNS = st.lists(st.lists(st.floats(1, 100), min_size=5, max_size=5), min_size=2, max_size=2)


@given(RUNS, RUNS, st.floats(0.1, 10))
def test_the_interval_scales_and_inverts(c: list[list[float]], d: list[list[float]], factor: float) -> None:
    centre, low, high = hodges_lehmann(c, d)
    assert low <= high
    scaled = hodges_lehmann(c, [[factor * value for value in values] for values in d])
    assert scaled == pytest.approx((factor * centre, factor * low, factor * high))
    assert hodges_lehmann(d, c) == pytest.approx((1 / centre, 1 / high, 1 / low))


def test_the_interval_of_exact_times_is_a_point() -> None:
    assert hodges_lehmann([[2.0] * 5] * 4, [[3.0] * 5] * 4) == pytest.approx((1.5, 1.5, 1.5))
    assert hodges_lehmann([[2.0]], [[3.0]]) == pytest.approx((1.5, 1.5, 1.5))
