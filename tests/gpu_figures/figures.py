"""What a part of the measurement says, as lines of JSON, and how time is shared out among the parts. Pure."""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

# One of {"figure": {...}}, {"each": {...}}, {"facts": {...}} and {"missing": "what, and why"}.
Line = dict[str, Any]
SIGNIFICANT = 0.05
DIGITS = 6
# Characters of an error.
MOST_WORDS = 600


@dataclass(frozen=True)
class Deadline:
    """When a part has to end (s, on this process's monotonic clock), and what was cut short for it."""

    at_s: float
    cut: list[str] = field(default_factory=list)

    @classmethod
    def within(cls, seconds: float) -> "Deadline":
        return cls(time.monotonic() + seconds)

    @property
    def left_s(self) -> float:
        return self.at_s - time.monotonic()

    def turns(self, count: int, what: str) -> Iterator[int]:
        """0, 1, ... below `count`, for as long as there is time; the first one always."""
        for number in range(count):
            if number and self.left_s <= 0:
                self.cut.append(f"{what}: stopped after {number} of {count}, for lack of time")
                return
            yield number


def allotment(left_s: float, weights: Sequence[float]) -> float:
    """Seconds of the first of the parts that are left; what it leaves over goes to the others."""
    return max(left_s, 0.0) * weights[0] / sum(weights)


def single(
    name: str, value: float, unit: str, goal: float | None = None, note: str = "", n: int = 1, **more: Any
) -> Line:
    """A figure of one value; `goal` is an upper bound."""
    met = None if goal is None else value <= goal
    found = {"name": name, "value": rounded(value), "unit": unit, "goal": goal, "met": met, "n": n, "note": note}
    return {"figure": found | more}


def spread(
    name: str, values: Sequence[float], unit: str, goal: float | None = None, note: str = "", **more: Any
) -> Line:
    """A figure of several values: their median, with the 10th and the 90th percentile."""
    low, middle, high = (float(found) for found in np.quantile(values, (0.1, 0.5, 0.9)))
    return single(name, middle, unit, goal, note, len(values), low=rounded(low), high=rounded(high), **more)


def quantile(values: Sequence[float], share: float) -> float:
    return float(np.quantile(values, share))


def rounded(value: float) -> float:
    """To a few significant digits; the rest is noise, and hard to read."""
    return float(f"{value:.{DIGITS}g}")


def percent_off(found: float, truth: float) -> float:
    return abs(found / truth - 1) * 100


def most_by_chance(of: int, rate: float) -> int:
    """The largest number of hits that is not significantly more than `rate` of `of` (binomial, one-sided at 5 %)."""
    more = 1.0  # the probability of more hits than so far
    for hits in range(of + 1):
        more -= math.comb(of, hits) * rate**hits * (1 - rate) ** (of - hits)
        if more < SIGNIFICANT:  # more hits than these are seen as rarely as that
            return hits
    return of


def why(error: Exception) -> str:
    """An error in one line: its message, and the end of the log that came with it."""
    detail, log = getattr(error, "detail", {}), getattr(error, "log", "")
    said = f"{error}: {detail.get('message') or detail} {log}" if detail else f"{error} {log}"
    return " ".join(said.split())[-MOST_WORDS:]


def missing(what: str, error: Exception) -> Line:
    """One result that could not be had; the others go on."""
    return {"missing": f"{what}: {why(error)}"}


def gathered(lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The lines of a part as one object: figures, single results, facts, and what is missing."""
    found: dict[str, Any] = {"figures": [], "each": [], "missing": [], "facts": {}}
    lists = {"figure": "figures", "each": "each", "missing": "missing"}
    for line in lines:
        for kind, what in line.items():
            if kind in lists:
                found[lists[kind]].append(what)
            else:
                found["facts"] |= what if kind == "facts" else {kind: what}
    return found
