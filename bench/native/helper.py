"""The judge's native helper as typed Python functions, built on first use and cached by content."""

import ctypes
import fcntl
import mmap
import os
from collections.abc import Sequence
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_int64, c_uint64, c_void_p
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.dtypes import FLOATS
from bench.native.programs import build
from bench.task import MAX_ARGUMENTS

CALL_TIMEOUT, CALL_DIED = -1, -2
CALL_OVER = 2


class State(IntEnum):
    """`enum kc_state` (control.h): how far a runner has come."""

    STARTING = 0
    READY = 1
    NOT_LOADED = 2
    NO_SYMBOL = 3
    RAISED = 4
    LOADING = 5
    ENDED = 6
    REFUSED = 7


class What(IntEnum):
    """`enum kc_what` (control.h): what a call is."""

    KERNEL = 0
    EMPTY = 1
    TOUCH = 2
    WATCHED = 3


class Control(ctypes.Structure):
    """Mirror of `struct kc_control` (control.h)."""

    _fields_ = (
        ("go", c_int64),
        ("what", c_int64),
        ("slot", c_int64 * MAX_ARGUMENTS),
        ("_pad", ctypes.c_char * (384 - 16 - 8 * MAX_ARGUMENTS)),
        ("done", c_int64),
        ("own_ns", c_int64),
        ("state", c_int64),
        ("fp_changed", c_int64),
        ("admitted", c_int64),
        ("fault", c_int64),
        ("message", ctypes.c_char * 2048),
        ("bytes", c_int64 * MAX_ARGUMENTS),
    )


def control_page() -> tuple[int, Control]:
    """A new control page: its descriptor, for the runner to map, and the page as it is mapped here."""
    fd = os.memfd_create("control", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, mmap.PAGESIZE)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    return fd, Control.from_buffer(mmap.mmap(fd, mmap.PAGESIZE))


def runner_program(checks: tuple[str, ...] = ()) -> Path:
    """The process that native submissions run in; with the compiler's options `checks`, one that a tool looks into."""
    return build("runner.c", "", ("-O1", "-g", "-DKC_CHECKED", *checks) if checks else ("-O2",))


def replay_program() -> Path:
    """The process that a profiler watches."""
    return build("replay.c", "", ("-O2",))


def python_waiter() -> Path:
    """The library that the Python runner waits with."""
    return build("pywait.c", ".so", ("-O2", "-fPIC", "-shared"))


@lru_cache(maxsize=1)
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(str(build("helper.c", ".so", ("-O3", "-march=native", "-fPIC", "-shared"))))
    library.kc_call.restype = c_int64
    library.kc_call.argtypes = [c_void_p, c_int64, c_void_p, *[c_int64] * 3, c_int, c_int, c_void_p]
    library.kc_call.argtypes += [c_void_p, c_void_p, c_int64, POINTER(Switch), POINTER(c_int64)]
    library.kc_keep_warm.argtypes = [c_void_p, c_int]
    library.kc_fill.argtypes = [c_void_p, c_int64, c_char_p, c_char_p, c_uint64, c_uint64, c_uint64]
    library.kc_poison.argtypes = [c_void_p, c_int64, c_uint64]
    library.kc_poison_check.restype = c_int64
    library.kc_poison_check.argtypes = [c_void_p, c_int64, c_uint64]
    library.kc_flush.argtypes = [c_void_p, c_int64]
    library.kc_sweep.argtypes = [c_void_p, c_int64]
    float_arguments = [c_void_p] * 3 + [c_int64, c_double, c_double, POINTER(c_int64)]
    for dtype in FLOATS:
        getattr(library, f"kc_widen_{dtype}").argtypes = [c_void_p, c_void_p, c_int64]
        compare = getattr(library, f"kc_compare_{dtype}")
        compare.restype, compare.argtypes = c_int64, float_arguments
    library.kc_compare_exact.restype = c_int64
    library.kc_compare_exact.argtypes = [c_void_p, c_void_p, c_int64, c_int64, POINTER(c_int64)]
    return library


@dataclass(frozen=True)
class Timing:
    """One call: elapsed ns on the judge's clock, or CALL_TIMEOUT / CALL_DIED; times the clock was disturbed.

    `offset_ns` is what the judge's clock shows above the runner's own, `strayed` that the runner's shows more by far;
    both are known of a whole call alone. `seen` is what the watched bytes held when it said that it was done. A GPU was
    the runner's after `woken_ns`, when the clock started, and the judge's again `back_ns` after the end, which is
    `late_ns` more than after an empty call.
    """

    elapsed_ns: int
    disturbed: int
    offset_ns: int = 0
    strayed: bool = False
    seen: bytes = b""
    woken_ns: int = 0
    back_ns: int = 0
    late_ns: int = 0


class Switch(ctypes.Structure):
    """Mirror of `struct kc_switch` (helper.c); `take_back` is a function's address."""

    _fields_ = (("take_back", c_void_p), ("woken_ns", c_int64), ("back_ns", c_int64))


def call(
    control: Control,
    generation: int,
    slots: Any,
    what: What,
    limit_ns: int,
    child: int,
    runner: int,
    phase: c_int | None,
    watched: Sequence[int] = (),
    switch: Switch | None = None,
) -> Timing:
    """Ask a stopped runner for one call and time it; `slots` is a ctypes array of int64.

    Waking is in the time. With a `switch` of the device it is not: generation - 1 is for that.

    `child` is the process of ours whose end is the runner's; the process `runner` is stopped the moment it answers. It
    is woken by `keep_warm`, which waits for `phase`, if there is one. `watched` are addresses of bytes, here, that must
    not change after that moment.
    """
    disturbed = c_int64()
    addresses, seen = (c_void_p * len(watched))(*watched), (ctypes.c_ubyte * len(watched))()
    elapsed = _library().kc_call(
        *(byref(control), generation, slots, len(slots), what, limit_ns, child, runner),
        *(None if phase is None else byref(phase), addresses, seen, len(watched)),
        *(None if switch is None else byref(switch), byref(disturbed)),
    )
    woken_ns, back_ns = (switch.woken_ns, switch.back_ns) if switch else (0, 0)
    return Timing(elapsed, disturbed.value, seen=bytes(seen), woken_ns=woken_ns, back_ns=back_ns)


def keep_warm(phase: c_int, runner: int) -> None:
    """Spin on this thread's core, without Python's lock, until a call begins; then let `runner` (if not 0) go on."""
    _library().kc_keep_warm(byref(phase), runner)


def fill(out: NDArray[Any], family: str, key: tuple[int, int], bound: int = 0) -> None:
    """Fill a contiguous array in place from the Philox stream of `key`."""
    code = _library().kc_fill(out.ctypes.data, out.size, out.dtype.name.encode(), family.encode(), bound, *key)
    if code:
        raise ValueError(f"no family '{family}' for dtype {out.dtype}")


def poison(out: NDArray[Any], key: int) -> None:
    """Overwrite a contiguous array with random bits."""
    _library().kc_poison(out.ctypes.data, out.nbytes, key)


def poison_intact(area: NDArray[Any], key: int) -> bool:
    """Whether an area still holds what `poison` wrote there with the same key."""
    return bool(_library().kc_poison_check(area.ctypes.data, area.nbytes, key) < 0)


def widen(values: NDArray[Any], out: NDArray[Any]) -> None:
    """Copy a contiguous array, floats into float64 of the same shape, anything else into its own dtype."""
    if values.dtype.name in FLOATS:
        getattr(_library(), f"kc_widen_{values.dtype.name}")(values.ctypes.data, out.ctypes.data, values.size)
    else:
        out[...] = values


def flush(area: NDArray[Any]) -> bool:
    """Put an array's lines out of every cache; False where the processor cannot (sweep instead)."""
    return bool(_library().kc_flush(area.ctypes.data, area.nbytes))


def sweep(scratch: NDArray[np.uint8]) -> None:
    """Walk a scratch area larger than the last-level cache."""
    _library().kc_sweep(scratch.ctypes.data, scratch.nbytes)


@dataclass(frozen=True)
class Difference:
    """How many elements are out of bounds, and the first of them (flat index)."""

    count: int
    first: int


def compare(
    got: NDArray[Any],
    expected: NDArray[Any],
    magnitude: NDArray[np.float64] | None = None,
    factor: float = 0.0,
    floor: float = 0.0,
) -> Difference:
    """Compare an output in full: floats within `factor * magnitude + floor` of a float64 oracle, integers exactly.

    Without `magnitude` the bound grows with |expected|. All arrays are contiguous and of the same shape.
    """
    first = c_int64(-1)
    if got.dtype.name not in FLOATS:
        if got.dtype != expected.dtype:
            raise ValueError(f"an oracle of dtype {expected.dtype} cannot judge an output of dtype {got.dtype}")
        count = _library().kc_compare_exact(got.ctypes.data, expected.ctypes.data, got.size, got.itemsize, byref(first))
    else:
        compare_floats = getattr(_library(), f"kc_compare_{got.dtype.name}")
        scale = expected if magnitude is None else magnitude
        count = compare_floats(
            got.ctypes.data, expected.ctypes.data, scale.ctypes.data, got.size, factor, floor, byref(first)
        )
    return Difference(count, first.value)
