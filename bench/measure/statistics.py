"""The statistics of credit, as pure functions over times in ns: test, ratio, score and interval."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement
from statistics import fmean, median, quantiles

Times = Sequence[float]
# Beyond either end of the 90 % interval.
TAIL = 0.05


@lru_cache(maxsize=64)
def _rank_sum_counts(n: int, m: int) -> tuple[int, ...]:
    """How many of the C(n+m, n) orders give each value of Mann-Whitney's U (Mann and Whitney 1947, recursion)."""
    if n == 0 or m == 0:
        return (1,)
    counts = [0] * (n * m + 1)
    for value, ways in enumerate(_rank_sum_counts(n - 1, m)):
        counts[value + m] += ways
    for value, ways in enumerate(_rank_sum_counts(n, m - 1)):
        counts[value] += ways
    return tuple(counts)


def mann_whitney_less(x: Times, y: Times) -> float:
    """Exact one-sided p-value for "x tends to be smaller than y"; a tie counts against it.

    Half a loss a tie would be the usual convention, but its p-value can be below the true one (of five 1s and five
    2s, 26 of 252 deals would be credited at 0.1); a whole one keeps the test valid however many ties there are.
    """
    losses = sum(a >= b for a in x for b in y)
    counts = _rank_sum_counts(len(x), len(y))
    return sum(counts[: losses + 1]) / sum(counts)


@dataclass(frozen=True)
class Credit:
    """One timed input: the raw ratio of medians, the test's p-value, and the ratio that counts."""

    raw: float
    p: float
    ratio: float

    @property
    def credited(self) -> bool:
        return self.ratio != 1.0


def credit(candidate: Times, denominator: Times, alpha: float) -> Credit:
    """r = median(denominator) / median(candidate) where the test in its direction gives p < alpha, else exactly 1."""
    raw = median(denominator) / median(candidate)
    p = mann_whitney_less(candidate, denominator) if raw >= 1 else mann_whitney_less(denominator, candidate)
    return Credit(raw, p, raw if p < alpha else 1.0)


def relative_iqr(times: Times) -> float:
    """Distance of the quartiles (inclusive, linear between values) over the median: noise of one side of an input."""
    if len(times) < 2:
        return 0.0
    low, mid, high = quantiles(times, n=4, method="inclusive")
    return (high - low) / mid


def chance_credit(runs: int, alpha: float) -> float:
    """How often `credit` departs from 1 when both sides are alike and no times tie: 19 / 126 = 15.1 % at n = 5.

    The test looks in the direction of the medians, so both tails credit (one as a gain, one as a loss).
    """
    counts = _rank_sum_counts(runs, runs)
    total, tail = sum(counts), 0
    for ways in counts:
        if (tail + ways) / total >= alpha:
            break
        tail += ways
    return 2 * tail / total


def geometric_mean(ratios: Sequence[float]) -> float:
    """exp of the mean logarithm: no overflow over any number of inputs."""
    return math.exp(fmean(math.log(ratio) for ratio in ratios))


@lru_cache(maxsize=64)
def _signed_rank_counts(strata: tuple[int, ...]) -> tuple[int, ...]:
    """Null distribution of the sum of Wilcoxon's signed-rank statistics over strata of these sizes (counts)."""
    counts = [1]
    for size in strata:
        for rank in range(1, size + 1):
            moved = [0] * rank + counts
            counts = [a + b for a, b in zip(counts + [0] * rank, moved, strict=True)]
    return tuple(counts)


def _below_quantile(strata: tuple[int, ...], tail: float) -> int:
    """Largest k with P(T < k) <= tail under the null."""
    counts = _signed_rank_counts(strata)
    total, cumulated = sum(counts), 0
    for value, ways in enumerate(counts):
        cumulated += ways
        if cumulated / total > tail:
            return value
    raise AssertionError("a distribution sums to one")


def _walsh(values: Sequence[float]) -> list[float]:
    return [(a + b) / 2 for a, b in combinations_with_replacement(values, 2)]


def hodges_lehmann(candidate: Sequence[Times], denominator: Sequence[Times]) -> tuple[float, float, float]:
    """Estimate and 90 % interval of the raw ratio over all inputs: (centre, low, high).

    `candidate[i][j]` and `denominator[i][j]` are the paired times of run j on input i. Within an input the centre is
    the median of the Walsh averages of the paired log ratios (Hodges and Lehmann 1963); over inputs it is their
    mean, as for S. The interval inverts the signed-rank test stratified by input, on the residuals of each input's
    own centre, widened by (n + 1) / (n - 1) for the centre that each input spends and for outliers: it then covers
    about 95 % under Gaussian noise and 88 % under one-sided outliers (tests/test_statistics.py). It describes the raw
    ratio, not the protocol's r, whose uncredited inputs count as 1.
    """
    logs = [
        [math.log(d / c) for c, d in zip(cs, ds, strict=True)] for cs, ds in zip(candidate, denominator, strict=True)
    ]
    centres = [median(_walsh(values)) for values in logs]
    centre = fmean(centres)
    residuals = sorted(r for values, mid in zip(logs, centres, strict=True) for r in _walsh([v - mid for v in values]))
    strata = tuple(len(values) for values in logs)
    cut = _below_quantile(strata, TAIL)
    cut = min(max(cut - 1, 0), (len(residuals) - 1) // 2)
    runs = min(strata)
    spread = (runs + 1) / (runs - 1) if runs > 1 else 1.0
    low, high = residuals[cut] * spread, residuals[-1 - cut] * spread
    return math.exp(centre), math.exp(centre + low), math.exp(centre + high)
