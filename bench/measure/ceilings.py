"""The most that this machine's timing cores do, measured: bandwidth of each cache level and of memory, peak flops."""

import ctypes
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from ctypes import POINTER, byref, c_int64, c_void_p
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.devices.cpu import cache_sizes
from bench.measure.calibration import Ceilings, Level
from bench.native import programs

TRIES = 9
TRY_NS = 4_000_000
WALKS, PEAKS = ("kc_read", "kc_copy", "kc_stream"), ("kc_peak_float32", "kc_peak_float64")
MEMORY_TIMES_CACHE, MEMORY_LEAST, MEMORY_MOST = 4, 256 << 20, 2 << 30
# The read loop goes in steps of at most this many bytes.
STEP = 2048


def memory_area_bytes(caches: dict[str, int]) -> int:
    """Bytes to walk so that no cache helps much: four times the largest cache, within 256 MiB to 2 GiB."""
    return min(max(MEMORY_TIMES_CACHE * max(caches.values(), default=0), MEMORY_LEAST), MEMORY_MOST)


def measure(cores: Sequence[int]) -> Ceilings:
    """The best rates of several tries on all of `cores` at once; the caller holds the timing lease.

    Raises:
        EnvironmentFault: gcc cannot build the loops.
    """
    caches = cache_sizes(cores[0])
    levels = [_cache(cores, name, size) for name, size in caches.items()]
    return Ceilings(
        cores=len(cores),
        levels=(*levels, _memory(cores, memory_area_bytes(caches))),
        float32_flops=_together(cores, partial(_peak, PEAKS[0])),
        float64_flops=_together(cores, partial(_peak, PEAKS[1])),
    )


def better(first: Ceilings, second: Ceilings) -> Ceilings:
    """The higher of each rate of two measurements of the same cores: what was disturbed once may not be twice."""
    levels = [
        Level(
            name=one.name,
            bytes=one.bytes,
            read_rate=max(one.read_rate, other.read_rate),
            copy_rate=max(one.copy_rate, other.copy_rate),
            stream_rate=one.stream_rate and max(one.stream_rate, other.stream_rate or 0.0),
        )
        for one, other in zip(first.levels, second.levels, strict=True)
    ]
    return Ceilings(
        cores=first.cores,
        levels=tuple(levels),
        float32_flops=max(first.float32_flops, second.float32_flops),
        float64_flops=max(first.float64_flops, second.float64_flops),
    )


def _cache(cores: Sequence[int], name: str, size: int) -> Level:
    """Rates on areas of half the cache: one that is filled to the brim loses lines to whatever else runs."""
    read_rate, copy_rate = (_walk(cores, loop, size // 2) for loop in WALKS[:2])
    return Level(name=name, bytes=size, read_rate=read_rate, copy_rate=copy_rate)


def _memory(cores: Sequence[int], area_bytes: int) -> Level:
    read_rate, copy_rate, stream_rate = (_walk(cores, loop, area_bytes // len(cores)) for loop in WALKS)
    return Level(name="memory", bytes=area_bytes, read_rate=read_rate, copy_rate=copy_rate, stream_rate=stream_rate)


def _walk(cores: Sequence[int], loop: str, area_bytes: int) -> float:
    """Rate of one loop over an area of about `area_bytes` a core."""
    return _together(cores, partial(_bandwidth, loop, max(area_bytes // STEP, 1) * STEP))


def _together(cores: Sequence[int], rate: Callable[[], float]) -> float:
    """Sum of what each core reaches while all of them are at it, each pinned to its own."""
    start = threading.Barrier(len(cores))

    def on_core(core: int) -> float:
        os.sched_setaffinity(0, {core})  # of this thread alone
        start.wait()
        return rate()

    with ThreadPoolExecutor(len(cores)) as threads:
        return sum(threads.map(on_core, cores))


def _bandwidth(loop: str, nbytes: int) -> float:
    """Best rate of one loop over an area, in bytes per ns."""
    area = _aligned(nbytes)
    walk = _library()[loop]
    passes = max(int(TRY_NS / max(walk(area.ctypes.data, nbytes, 1), 1)), 1)
    return max(passes * nbytes / max(walk(area.ctypes.data, nbytes, passes), 1) for _ in range(TRIES))


def _aligned(nbytes: int) -> NDArray[np.uint8]:
    """An area of touched pages that starts at a multiple of 64 bytes."""
    raw = np.ones(nbytes + 64, np.uint8)
    offset = -raw.ctypes.data % 64
    return raw[offset : offset + nbytes]


def _peak(name: str) -> float:
    """Best rate in floating-point operations per ns; a fused multiply-add counts as two."""
    loop, operations = _library()[name], c_int64()
    rounds = max(int(TRY_NS / max(loop(10_000, byref(operations)), 1) * 10_000), 1)
    rates = []
    for _ in range(TRIES):
        elapsed_ns = loop(rounds, byref(operations))
        rates.append(operations.value / max(elapsed_ns, 1))
    return max(rates)


@lru_cache(maxsize=1)
def _library() -> dict[str, Callable[..., int]]:
    """The native loops by name; each returns the ns that it took, and lets other threads run meanwhile."""
    library = ctypes.CDLL(str(programs.build("bandwidth.c", ".so", ("-O3", "-march=native", "-fPIC", "-shared"))))
    walk: tuple[Any, ...] = (c_void_p, c_int64, c_int64)
    peak: tuple[Any, ...] = (c_int64, POINTER(c_int64))
    loops: dict[str, Callable[..., int]] = {}
    for name, argtypes in {**dict.fromkeys(WALKS, walk), **dict.fromkeys(PEAKS, peak)}.items():
        loop = library[name]
        loop.restype, loop.argtypes = c_int64, argtypes
        loops[name] = loop
    return loops
