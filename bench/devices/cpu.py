"""The CPU as a device: what it is, and how its caches are emptied before a timed call."""

import contextlib
import os
import platform
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.cache import processor
from bench.native import helper

NAME = "cpu"
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_FALLBACK_CACHE_BYTES = 64 << 20
_FREQUENCY = "/sys/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq"


@lru_cache(maxsize=1)
def last_level_cache_bytes() -> int:
    """Size of the largest cache of core 0 as the kernel reports it; 64 MiB where it reports none."""
    sizes = [path.read_text().strip() for path in _CACHES.glob("index*/size")]
    units = {"K": 1 << 10, "M": 1 << 20}
    return max(
        (int(text[:-1]) * units[text[-1]] for text in sizes if text[-1:] in units),
        default=_FALLBACK_CACHE_BYTES,
    )


@lru_cache(maxsize=1)
def _scratch() -> NDArray[np.uint8]:
    return np.zeros(2 * last_level_cache_bytes(), np.uint8)


def flush_caches(area: NDArray[Any]) -> None:
    """Put an array out of every cache: by line where the processor can, else by walking twice the largest cache."""
    if not helper.flush(area):
        helper.sweep(_scratch())


@lru_cache(maxsize=1)
def description() -> dict[str, Any]:
    """Facts about this machine that go with every grade."""
    model = next((line.split(":", 1)[1].strip() for line in processor().splitlines() if ":" in line), "unknown")
    return {
        "host": platform.node(),
        "cpu_model": model,
        "kernel": platform.release(),
        "cores": os.cpu_count(),
        "last_level_cache_bytes": last_level_cache_bytes(),
    }


def load_average() -> float:
    """One-minute load average: how busy the machine was beside the grade."""
    return os.getloadavg()[0]


def frequency_mhz(core: int) -> float | None:
    """Clock of a core now in MHz, from /sys (kHz there) or else /proc/cpuinfo; None where neither shows it."""
    with contextlib.suppress(OSError, ValueError):
        return int(Path(_FREQUENCY.format(core)).read_text()) / 1e3
    for block in Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n"):
        facts = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in block.splitlines())}
        if facts.get("processor") == str(core) and "cpu MHz" in facts:
            return float(facts["cpu MHz"])
    return None
