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
CORES = Path("/sys/devices/system/cpu")
_FALLBACK_CACHE_BYTES = 64 << 20
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def cache_sizes(core: int, root: Path = CORES) -> dict[str, int]:
    """Data caches that Linux reports for a core, smallest first: name ("L1", ...) → bytes."""
    found: dict[str, int] = {}
    for index in sorted((root / f"cpu{core}" / "cache").glob("index*")):
        size = (index / "size").read_text().strip()
        if (index / "type").read_text().strip() != "Instruction" and size[-1:] in _UNITS:
            found[f"L{(index / 'level').read_text().strip()}"] = int(size[:-1]) * _UNITS[size[-1]]
    return dict(sorted(found.items(), key=lambda item: item[1]))


@lru_cache(maxsize=1)
def last_level_cache_bytes() -> int:
    """Size of the largest cache of core 0; 64 MiB where Linux reports none."""
    return max(cache_sizes(0).values(), default=_FALLBACK_CACHE_BYTES)


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


def frequency_mhz(core: int) -> float | None:
    """Clock of a core now in MHz, from /sys (kHz there) or else /proc/cpuinfo; None where neither shows it."""
    with contextlib.suppress(OSError, ValueError):
        return int((CORES / f"cpu{core}/cpufreq/scaling_cur_freq").read_text()) / 1e3
    for block in Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n"):
        facts = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in block.splitlines())}
        if facts.get("processor") == str(core) and "cpu MHz" in facts:
            return float(facts["cpu MHz"])
    return None
