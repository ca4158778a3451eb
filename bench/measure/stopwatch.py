"""Where a grade's time goes: named stages in ms, and what is left over as the judge's own overhead."""

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

# Not the judge's overhead: the work that a grade exists for, and what its honesty costs.
WORK_STAGES = frozenset({"build", "kernel", "oracle", "values", "compare", "flush", "wait", "tools", "race"})


class Stopwatch:
    """Sums time by stage; a stage inside another is counted once, as its own."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._spent: dict[str, float] = defaultdict(float)
        self._open: list[float] = []

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        begun = time.perf_counter()
        self._open.append(0.0)
        try:
            yield
        finally:
            whole = time.perf_counter() - begun
            self._spent[name] += whole - self._open.pop()
            if self._open:
                self._open[-1] += whole

    def note(self, name: str, seconds: float) -> None:
        """A thread beside this one has spent so long on a stage since the beginning; what both did counts once."""
        self._spent[name] = max(self._spent[name], seconds)

    def stages_ms(self) -> dict[str, float]:
        """Stage → ms, and `total`."""
        spent = {name: round(seconds * 1e3, 3) for name, seconds in sorted(self._spent.items())}
        return {**spent, "total": round((time.perf_counter() - self._start) * 1e3, 3)}

    def overhead_ms(self) -> float:
        """ms outside building, the kernels, the oracle, values, comparison, flushing, races and waiting for a core."""
        work = sum(seconds for name, seconds in self._spent.items() if name in WORK_STAGES)
        return round((time.perf_counter() - self._start - work) * 1e3, 3)
