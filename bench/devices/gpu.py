"""A GPU as the judge holds it: opened once in the measuring process, with buffers, values and checks on the device."""

import ctypes
import math
import weakref
from collections.abc import Mapping
from ctypes import POINTER, byref, c_char, c_char_p, c_double, c_int, c_int64, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.build.gpu_library import Kit, own_library
from bench.errors import EnvironmentFault, JudgeFault
from bench.native.helper import Difference

# More than any last-level cache holds: 256 MB of an MI300's.
FLUSH_BYTES = 512 << 20


@dataclass(frozen=True)
class DeviceArray:
    """A contiguous array on the device, as far as it can be like NumPy's: it knows its place, and not what it holds.

    `owner` gives the memory back when the last array of it has gone.
    """

    address: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    owner: object = None

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    def __getitem__(self, part: slice) -> "DeviceArray":
        """A part, without steps, of a flat array."""
        start, stop, _ = part.indices(self.size)
        return DeviceArray(self.address + start * self.itemsize, (max(stop - start, 0),), self.dtype, self.owner)

    def view(self, dtype: str | np.dtype[Any]) -> "DeviceArray":
        """The same bytes as a flat array of another type."""
        kind = np.dtype(dtype)
        return DeviceArray(self.address, (self.nbytes // kind.itemsize,), kind, self.owner)

    def reshape(self, shape: tuple[int, ...] | int) -> "DeviceArray":
        wanted = (self.size,) if isinstance(shape, int) else shape
        return DeviceArray(self.address, wanted, self.dtype, self.owner)


class _Owner:
    """Stands for a piece of memory."""


class _Facts(ctypes.Structure):
    _fields_ = (
        ("name", c_char * 256),
        ("memory_bytes", c_int64),
        ("cache_bytes", c_int64),
        ("multiprocessors", c_int64),
        ("wave", c_int64),
    )


_SIGNATURES: Mapping[str, tuple[Any, ...]] = {
    "open": (c_int, c_int64, POINTER(_Facts)),
    "create": (POINTER(c_int64), POINTER(c_void_p), POINTER(c_int)),
    "destroy": (c_void_p, c_int64),
    "allocate": (c_int64, POINTER(c_void_p)),
    "free": (c_void_p,),
    "upload": (c_void_p, c_void_p, c_int64),
    "download": (c_void_p, c_void_p, c_int64),
    "wait": (),
    "copy": (c_void_p, c_void_p, c_int64),
    "set": (c_void_p, c_int, c_int64),
    "fill": (c_void_p, c_int64, c_char_p, c_char_p, c_uint64, c_uint64, c_uint64),
    "widen": (c_void_p, c_char_p, c_void_p, c_int64),
    "poison": (c_void_p, c_int64, c_uint64),
    "poison_check": (c_void_p, c_int64, c_uint64, POINTER(c_int64)),
    "compare": (
        c_void_p,
        c_char_p,
        c_void_p,
        c_void_p,
        c_int64,
        c_double,
        c_double,
        POINTER(c_int64),
        POINTER(c_int64),
    ),
    "compare_exact": (c_void_p, c_void_p, c_int64, c_int64, POINTER(c_int64), POINTER(c_int64)),
    "digest": (c_void_p, c_int64, POINTER(c_uint64)),
    "flush": (c_int,),
    "copy_rate": (POINTER(c_double),),
    "round_trip": (POINTER(c_int64),),
}


class Gpu:
    """The first device that this process sees. Everything here waits until the device has done it.

    `take_back` is the address of a native function that waits until the device is this process's again.

    Each method raises JudgeFault when the device fails: no submission runs in this process.
    """

    def __init__(self, kit: Kit, flush_bytes: int = FLUSH_BYTES) -> None:
        """Raises EnvironmentFault when there is no device, or no compiler for it."""
        self.kit = kit
        self._copy_rate: float | None = None
        self._library = ctypes.CDLL(str(own_library(kit, "judge.hip")))
        self._library.kc_gpu_why.restype = c_char_p
        self.take_back = ctypes.cast(self._library.kc_gpu_take_back, c_void_p).value or 0
        for name, arguments in _SIGNATURES.items():
            getattr(self._library, f"kc_gpu_{name}").argtypes = arguments
        facts = _Facts()
        try:
            self._do("open", 0, flush_bytes, byref(facts))
        except JudgeFault as fault:
            raise EnvironmentFault(f"the device {kit.device} cannot be used: {fault}") from fault
        names = [name for name, _ in _Facts._fields_[1:]]
        self.facts = {"name": facts.name.decode(), **{name: getattr(facts, name) for name in names}}

    def _do(self, function: str, *arguments: Any) -> None:
        if code := getattr(self._library, f"kc_gpu_{function}")(*arguments):
            why = self._library.kc_gpu_why(code).decode() if code > 0 else "it knows no such type"
            raise JudgeFault(f"{function} on the device failed: {why}; grade again, or look at the device")

    def create(self, nbytes: int) -> tuple[DeviceArray, int]:
        """Memory that can be handed to a runner: its bytes (as many as asked for, or more), and a descriptor of it."""
        size, at, fd = c_int64(nbytes), c_void_p(), c_int()
        self._do("create", byref(size), byref(at), byref(fd))
        return DeviceArray(at.value or 0, (size.value,), np.dtype(np.uint8)), fd.value

    def destroy(self, area: DeviceArray) -> None:
        self._do("destroy", area.address, area.nbytes)

    def allocate(self, count: int, dtype: str | np.dtype[Any]) -> DeviceArray:
        """A flat array that nobody else sees, for as long as somebody here holds it."""
        kind, at = np.dtype(dtype), c_void_p()
        self._do("allocate", count * kind.itemsize, byref(at))
        owner = _Owner()
        weakref.finalize(owner, self._library.kc_gpu_free, at.value)
        return DeviceArray(at.value or 0, (count,), kind, owner)

    def put(self, view: DeviceArray, values: NDArray[Any]) -> None:
        """Copy an array of the same shape and type to the device."""
        held = np.ascontiguousarray(values, view.dtype)
        self._do("upload", view.address, held.ctypes.data, view.nbytes)

    def get(self, view: DeviceArray) -> NDArray[Any]:
        """A copy of an array of the device."""
        held = np.empty(view.shape, view.dtype)
        self._do("download", held.ctypes.data, view.address, view.nbytes)
        return held

    def fill(self, view: DeviceArray, family: str, key: tuple[int, int], bound: int = 0) -> None:
        """The values that `helper.fill` gives, bit for bit."""
        self._do("fill", view.address, view.size, view.dtype.name.encode(), family.encode(), bound, *key)

    def widen(self, view: DeviceArray, out: DeviceArray) -> None:
        """Copy: floats into float64, anything else into its own type."""
        if view.dtype == out.dtype:
            self._do("copy", out.address, view.address, view.nbytes)
        else:
            self._do("widen", view.address, view.dtype.name.encode(), out.address, view.size)

    def set(self, view: DeviceArray, byte: int) -> None:
        """The same value in every byte."""
        self._do("set", view.address, byte, view.nbytes)

    def wait(self) -> None:
        self._do("wait")

    def poison(self, area: DeviceArray, key: int) -> None:
        self._do("poison", area.address, area.nbytes, key)

    def poison_intact(self, area: DeviceArray, key: int) -> bool:
        """Whether an area still holds what `poison` wrote there with the same key."""
        first = c_int64()
        self._do("poison_check", area.address, area.nbytes, key, byref(first))
        return first.value < 0

    def compare(
        self, got: DeviceArray, expected: DeviceArray, magnitude: DeviceArray | None, factor: float, floor: float
    ) -> Difference:
        """As `helper.compare`."""
        bad, first = c_int64(), c_int64()
        if got.dtype.kind in "iu":
            self._do("compare_exact", got.address, expected.address, got.size, got.itemsize, byref(bad), byref(first))
        else:
            scale = expected if magnitude is None else magnitude
            where = (got.address, got.dtype.name.encode(), expected.address, scale.address, got.size)
            self._do("compare", *where, factor, floor, byref(bad), byref(first))
        return Difference(bad.value, first.value)

    def digest(self, area: DeviceArray) -> int:
        """A number that tells whether anything in an array has changed."""
        found = c_uint64()
        self._do("digest", area.address, area.nbytes, byref(found))
        return found.value

    def flush(self) -> None:
        """Put every array out of the device's caches."""
        self._do("flush", 0)

    def copy_rate(self) -> float:
        """Bytes per ns, read and written, of the fastest of a few large copies; measured once."""
        if self._copy_rate is None:
            found = c_double()
            self._do("copy_rate", byref(found))
            self._copy_rate = found.value
        return self._copy_rate

    def round_trip_ns(self) -> int:
        """How long a kernel that does nothing takes from here; more than a turn (a millisecond or so) where somebody
        else's work is on the device."""
        found = c_int64()
        self._do("round_trip", byref(found))
        return found.value
