"""Reduces the grades of a calibration to its figures: rates with intervals, spreads, what can be resolved. Pure."""

from collections.abc import Iterator, Sequence

import numpy as np
from scipy import stats

from bench.judge.schemas import Preset
from bench.measure.calibration import AgainstItself, Rung, Share, Spread, Track
from bench.measure.protocols import find_protocol
from bench.measure.statistics import chance_credit
from bench.records import GradeReport

Interval = tuple[float, float]
CONFIDENCE, SIGNIFICANT = 0.95, 0.05


def share(hits: int, of: int) -> Share:
    """A rate with its 95 % interval (Wilson 1927)."""
    found = stats.binomtest(hits, of).proportion_ci(CONFIDENCE, method="wilson")
    return Share(hits=hits, of=of, rate=hits / of, low=found.low, high=found.high)


def spread(values: Sequence[float]) -> Spread:
    """Median, 5th and 95th percentile."""
    low, middle, high = np.quantile(values, (0.05, 0.5, 0.95))
    return Spread(median=middle, low=low, high=high, of=len(values))


def resolves(lows: Sequence[float]) -> float:
    """The smallest ratio that nine grades of ten would show as faster, from the lower ends of A/A's intervals.

    A kernel that is r times faster moves its interval up by the factor r (that of the logarithms by log r), so it
    is shown as faster where low * r > 1.
    """
    return float(1 / np.quantile(lows, 0.1))


def rung(truth: float, raws: Sequence[float], intervals: Sequence[Interval]) -> Rung:
    """One ladder kernel's grades against its true ratio."""
    return Rung(
        truth=truth,
        raw=spread(raws),
        worst_error=max(abs(raw / truth - 1) for raw in raws),
        covered=sum(low <= truth <= high for low, high in intervals),
    )


def against_itself(protocol: str, reports: Sequence[tuple[str, GradeReport]]) -> AgainstItself:
    """The figures of A/A from (kernel, solved grade) pairs."""
    stamp = find_protocol(protocol)
    expected = chance_credit(stamp.runs, stamp.alpha)
    grades = [report for _, report in reports]
    credited = share(_credited(grades), _inputs(grades))
    p = float(stats.binomtest(credited.hits, credited.of, expected, alternative="greater").pvalue)
    return AgainstItself(
        protocol=protocol,
        grades=len(grades),
        credited=credited,
        expected=expected,
        p=p,
        above_chance=p < SIGNIFICANT,
        spread=_spread_of_scores(grades),
        covered=share(sum(low <= 1 <= high for low, high in map(_interval, grades)), len(grades)),
        order_effect=spread([*_first_over_second(grades)]),
        resolves=resolves([_interval(report)[0] for report in grades]),
        tracks=tuple(_tracks(reports)),
    )


def _tracks(reports: Sequence[tuple[str, GradeReport]]) -> Iterator[Track]:
    keys = dict.fromkeys((kernel, report.preset) for kernel, report in reports)
    for kernel, preset in keys:
        grades = [report for name, report in reports if (name, report.preset) == (kernel, preset)]
        yield _track(kernel, preset, grades)


def _track(kernel: str, preset: Preset, grades: Sequence[GradeReport]) -> Track:
    return Track(
        kernel=kernel,
        preset=preset,
        grades=len(grades),
        inputs=_inputs(grades),
        credited=_credited(grades),
        spread=_spread_of_scores(grades),
        resolves=resolves([_interval(report)[0] for report in grades]),
    )


def _inputs(grades: Sequence[GradeReport]) -> int:
    return sum(len(report.cells) for report in grades)


def _credited(grades: Sequence[GradeReport]) -> int:
    return sum(cell.credited for report in grades for cell in report.cells)


def _spread_of_scores(grades: Sequence[GradeReport]) -> float:
    """95th percentile of |S - 1|."""
    return float(np.quantile([abs(report.score - 1) for report in grades if report.score is not None], 0.95))


def _interval(report: GradeReport) -> Interval:
    assert report.interval is not None, "only solved grades are summarised"
    return report.interval


def _first_over_second(grades: Sequence[GradeReport]) -> Iterator[float]:
    """Ratio first/second of the two times of every pair."""
    for report in grades:
        for cell in report.cells:
            for who, candidate, denominator in zip(cell.order, cell.candidate_ns, cell.denominator_ns, strict=True):
                yield candidate / denominator if who == "c" else denominator / candidate
