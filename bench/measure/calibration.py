"""What a calibration of this machine found, as records, and the one place where the last of them is kept."""

import contextlib
import os
import platform
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from bench.cache import content_key, default_cache, processor, user_cache
from bench.errors import EnvironmentFault
from bench.judge.schemas import CalibrationBrief, Closed, Preset


class Share(Closed):
    """`hits` of `of`, as a rate with its 95 % Wilson interval."""

    hits: int
    of: int
    rate: float
    low: float
    high: float


class Spread(Closed):
    """Middle and the 5th and 95th percentile of `of` values."""

    median: float
    low: float
    high: float
    of: int


class Track(Closed):
    """A/A on one kernel and preset. `spread` is the 95th percentile of |S - 1|, `resolves` as in AgainstItself."""

    kernel: str
    preset: Preset
    grades: int
    inputs: int
    credited: int
    spread: float
    resolves: float


class AgainstItself(Closed):
    """A/A: the denominator graded against itself, where every credit and every difference is noise.

    `expected` is the rate of credit that the protocol gives to pure chance, `p` the one-sided probability of this
    many credits or more at that rate; `above_chance` says p < 0.05. `spread` is the 95th percentile of |S - 1|,
    `covered` how many 90 % intervals hold 1. `order_effect` is the ratio first/second of the two times of a pair.
    `resolves` is the smallest ratio that nine grades of ten would show as faster.
    """

    protocol: str
    grades: int
    credited: Share
    expected: float
    p: float
    above_chance: bool
    spread: float
    covered: Share
    order_effect: Spread
    resolves: float
    tracks: tuple[Track, ...]


class Rung(Closed):
    """Kernels whose true ratio is known: the raw ratios found, the worst relative error, intervals that hold it."""

    truth: float
    raw: Spread
    worst_error: float
    covered: int


class Level(Closed):
    """A cache level or the memory. `bytes` is its size (for memory: of the area walked); rates in bytes per ns.

    A copy counts what it reads and what it writes. `stream_rate` is that of two streams read and one written past the
    caches, which makes sense for memory alone.
    """

    name: str
    bytes: int
    read_rate: float
    copy_rate: float
    stream_rate: float | None = None

    @property
    def best(self) -> float:
        """The highest rate, in bytes per ns (= GB/s)."""
        return max(self.read_rate, self.copy_rate, self.stream_rate or 0.0)


class Ceilings(Closed):
    """The most that the timing cores do together: bytes per ns a level (memory last), operations per ns."""

    cores: int
    levels: Annotated[tuple[Level, ...], Field(min_length=1)]
    float32_flops: float
    float64_flops: float

    @property
    def memory(self) -> Level:
        return self.levels[-1]

    @property
    def flops(self) -> float:
        """The higher peak, in operations per ns (= Gflop/s)."""
        return max(self.float32_flops, self.float64_flops)


class Calibration(Closed):
    """One run of `kcourt calibrate`. Times are UTC; empty calls are over the runners of several grades."""

    made_at: str
    host: str
    cpu_model: str
    machine_cores: int
    kernel_release: str
    package_version: str
    package_commit: str | None
    sandbox: str
    timing_cores: tuple[int, ...]
    clock_core: int
    quick: bool
    seconds: float
    quiet: tuple[str, ...]
    empty_call_ns: Spread
    empty_python_call_ns: Spread
    against_itself: AgainstItself
    ladder_preset: Preset
    ladder: tuple[Rung, ...]
    ladder_covered: Share
    ceilings: Ceilings

    @cached_property
    def brief(self) -> CalibrationBrief:
        """The short form that `/health` carries."""
        return CalibrationBrief(
            made_at=self.made_at,
            quick=self.quick,
            empty_call_ns=self.empty_call_ns.median,
            inputs=self.against_itself.credited.of,
            false_credit=self.against_itself.credited.rate,
            above_chance=self.against_itself.above_chance,
            spread=self.against_itself.spread,
            resolves=self.against_itself.resolves,
            memory_gb_per_s=self.ceilings.memory.best,
        )


def _file(cache: Path) -> Path:
    return cache / "calibrations" / f"{_machine()}.json"


@lru_cache(maxsize=1)
def _machine() -> str:
    """One key a processor and host."""
    return content_key(processor(), platform.node())


def save(found: Calibration) -> Path:
    """Keep a calibration as this machine's last, in the cache folder; appears whole or not at all.

    Raises:
        EnvironmentFault: the cache folder cannot be written.
    """
    target = _file(default_cache())
    fresh = target.with_suffix(f".{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_text(found.model_dump_json(indent=1) + "\n", encoding="utf-8")
        fresh.replace(target)
    except OSError as error:
        raise EnvironmentFault(
            f"{target}: cannot be written ({error.strerror}); set KCOURT_CACHE to a folder of yours"
        ) from error
    return target


def last(cache: Path | None = None) -> Calibration | None:
    """This machine's last calibration: from the cache folder, else from the user's; None where neither holds one.

    A judge has a cache folder of its own, but its machine is the one that the user has calibrated.

    Raises:
        EnvironmentFault: the file there is no calibration of this version.
    """
    for folder in (cache or default_cache(), user_cache()):
        kept = _file(folder)
        with contextlib.suppress(FileNotFoundError):
            return _read(kept, kept.stat().st_mtime_ns)
    return None


@lru_cache(maxsize=4)
def _read(kept: Path, _changed_ns: int) -> Calibration:
    """Parsed once for each state of the file: `last` is asked on every grade and every `/health`."""
    try:
        return Calibration.model_validate_json(kept.read_bytes())
    except ValidationError as error:
        raise EnvironmentFault(f"{kept}: is no calibration of this version; run `kcourt calibrate` again") from error
