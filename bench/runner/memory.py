"""Where the arrays of a grade lie, and what the judge does to them there: this machine's memory, or a GPU's."""

import contextlib
import fcntl
import mmap
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.devices import cpu
from bench.devices.gpu import DeviceArray, Gpu
from bench.errors import EnvironmentFault, JudgeFault
from bench.native import helper
from bench.native.helper import Difference

ALIGNMENT = 64
CANARY_BYTES = 4096
_F_ADD_SEALS, _SEAL, _SHRINK, _GROW, _FUTURE_WRITE = 1033, 0x1, 0x2, 0x4, 0x10
# A device that does nothing else answers within this; one that takes turns with another's work does not.
IDLE_NS = 1_000_000

# A contiguous array, here or on a device.
Array = Any


class Placement(StrEnum):
    """Where an array lies in its buffer: amid canaries, or flush against the guard page before or behind it."""

    MIDDLE = "middle"
    HEAD = "head"
    TAIL = "tail"


class Buffer(ABC):
    """Memory that runners borrow by its descriptor: `size` bytes, in runners writable as the argument's role allows."""

    fd: int
    size: int
    writable: bool
    bytes: Array

    def offset(self, nbytes: int, placement: Placement) -> int:
        """Byte offset, a multiple of 64, of an array of `nbytes` under a placement."""
        match placement:
            case Placement.HEAD:
                return 0
            case Placement.TAIL:
                return (self.size - nbytes) // ALIGNMENT * ALIGNMENT
            case Placement.MIDDLE:
                return CANARY_BYTES

    def slack(self, offset: int, nbytes: int) -> Iterable[Array]:
        """The canary areas before and behind an array."""
        end = offset + nbytes
        yield self.bytes[max(offset - CANARY_BYTES, 0) : offset]
        yield self.bytes[end : min(end + CANARY_BYTES, self.size)]

    @abstractmethod
    def close(self) -> None:
        """Give the memory back; a runner that still has it mapped keeps it."""


class HostBuffer(Buffer):
    """One sealed memfd, mapped writable here."""

    def __init__(self, name: str, capacity: int, writable: bool) -> None:
        self.size = -(-(capacity + 2 * CANARY_BYTES) // mmap.PAGESIZE) * mmap.PAGESIZE
        self.writable = writable
        self.fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(self.fd, self.size)
            self._map = mmap.mmap(self.fd, self.size)
        except (OSError, OverflowError, ValueError) as error:
            os.close(self.fd)
            message = f"no memory for the array '{name}' of {self.size} bytes ({error}); lower the preset's sizes"
            raise EnvironmentFault(message) from error
        self.bytes = np.frombuffer(self._map, np.uint8)
        # FUTURE_WRITE comes after our own mapping: from here on nobody can map an input writable.
        seals = _SEAL | _SHRINK | _GROW | (0 if writable else _FUTURE_WRITE)
        fcntl.fcntl(self.fd, _F_ADD_SEALS, seals)

    def close(self) -> None:
        del self.bytes
        # A verdict in flight may still hold views in its frames; the mapping goes with the last of them.
        with contextlib.suppress(BufferError):
            self._map.close()
        os.close(self.fd)


class DeviceBuffer(Buffer):
    """Memory of a GPU, mapped writable in the judge's context."""

    def __init__(self, gpu: Gpu, name: str, capacity: int, writable: bool) -> None:
        self._gpu, self.writable = gpu, writable
        try:
            self.bytes, self.fd = gpu.create(capacity + 2 * CANARY_BYTES)
        except JudgeFault as fault:
            message = f"no memory for the array '{name}' of {capacity} bytes ({fault}); lower the preset's sizes"
            raise EnvironmentFault(message) from fault
        self.size = self.bytes.nbytes

    def close(self) -> None:
        os.close(self.fd)
        self._gpu.destroy(self.bytes)


class Memory(ABC):
    """What the judge does to arrays, wherever they lie; values are those of `bench/inputs.py`."""

    @abstractmethod
    def buffer(self, name: str, capacity: int, writable: bool) -> Buffer:
        """Memory for an array of `capacity` bytes and its canaries; raises EnvironmentFault when there is none."""

    @abstractmethod
    def put(self, view: Array, values: NDArray[Any]) -> None:
        """Write an array of NumPy's to where a view lies."""

    @abstractmethod
    def get(self, view: Array) -> NDArray[Any]:
        """A copy of a view as NumPy's array."""

    @abstractmethod
    def seen(self, view: Array) -> NDArray[Any]:
        """A view as NumPy's array, for reading alone: a copy only where there is no other way."""

    @abstractmethod
    def taken(self, values: NDArray[Any]) -> Array:
        """An array of NumPy's where this memory's own are."""

    @abstractmethod
    def empty(self, count: int, dtype: str) -> Array:
        """A flat array of undefined content that no runner sees; it goes when nobody holds it."""

    @abstractmethod
    def address(self, view: Array) -> int:
        """Where a view begins."""

    @abstractmethod
    def blank(self, view: Array) -> None:
        """NaN in every element of a float64 array, 0 in one of integers."""

    @abstractmethod
    def widen(self, view: Array, out: Array) -> None:
        """Copy: floats into float64, anything else into its own type."""

    @abstractmethod
    def settle(self) -> None:
        """Wait until all that the judge asked for is done."""

    @abstractmethod
    def fill(self, view: Array, family: str, key: tuple[int, int], bound: int = 0) -> None:
        """Values of a family from the Philox stream of `key`."""

    @abstractmethod
    def poison(self, area: Array, key: int) -> None:
        """Random bits."""

    @abstractmethod
    def poison_intact(self, area: Array, key: int) -> bool:
        """Whether an area still holds what `poison` wrote there with the same key."""

    @abstractmethod
    def flush(self, areas: Sequence[Array]) -> None:
        """Put arrays out of every cache."""

    @abstractmethod
    def compare(self, got: Array, expected: Array, magnitude: Array, factor: float, floor: float) -> Difference:
        """As `helper.compare`."""

    @abstractmethod
    def stamp(self, areas: Sequence[Array]) -> object:
        """What tells, where a call may go on behind our backs, whether anything was written since; else nothing."""

    @abstractmethod
    def is_idle(self) -> bool:
        """Whether nothing but our own work is on the device."""

    @property
    def take_back(self) -> int:
        """Address of a native function that waits until a GPU is the judge's again; 0 where there is none."""
        return 0


class HostMemory(Memory):
    """This machine's memory."""

    def buffer(self, name: str, capacity: int, writable: bool) -> Buffer:
        return HostBuffer(name, capacity, writable)

    def put(self, view: Array, values: NDArray[Any]) -> None:
        view[...] = values

    def get(self, view: Array) -> NDArray[Any]:
        return np.array(view)

    def seen(self, view: Array) -> NDArray[Any]:
        return np.asarray(view)

    def taken(self, values: NDArray[Any]) -> Array:
        return values

    def empty(self, count: int, dtype: str) -> Array:
        return np.empty(count, dtype)

    def address(self, view: Array) -> int:
        return int(view.ctypes.data)

    def blank(self, view: Array) -> None:
        view.fill(np.nan if view.dtype == np.float64 else 0)

    def widen(self, view: Array, out: Array) -> None:
        helper.widen(view, out)

    def settle(self) -> None:
        return

    def fill(self, view: Array, family: str, key: tuple[int, int], bound: int = 0) -> None:
        helper.fill(view, family, key, bound)

    def poison(self, area: Array, key: int) -> None:
        helper.poison(area, key)

    def poison_intact(self, area: Array, key: int) -> bool:
        return helper.poison_intact(area, key)

    def flush(self, areas: Sequence[Array]) -> None:
        for area in areas:
            cpu.flush_caches(area)

    def compare(self, got: Array, expected: Array, magnitude: Array, factor: float, floor: float) -> Difference:
        return helper.compare(got, expected, magnitude, factor, floor)

    def stamp(self, areas: Sequence[Array]) -> object:
        return None

    def is_idle(self) -> bool:
        return True


class DeviceMemory(Memory):
    """A GPU's memory. Oracles may lie there too, or, for the small inputs of NumPy's, here."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu

    def buffer(self, name: str, capacity: int, writable: bool) -> Buffer:
        return DeviceBuffer(self.gpu, name, capacity, writable)

    def put(self, view: Array, values: NDArray[Any]) -> None:
        self.gpu.put(view, values)

    def get(self, view: Array) -> NDArray[Any]:
        return self.gpu.get(view)

    def seen(self, view: Array) -> NDArray[Any]:
        return view if isinstance(view, np.ndarray) else self.gpu.get(view)

    def taken(self, values: NDArray[Any]) -> Array:
        view = self.gpu.allocate(values.size, values.dtype).reshape(values.shape)
        self.gpu.put(view, values)
        return view

    def empty(self, count: int, dtype: str) -> Array:
        return self.gpu.allocate(count, dtype)

    def address(self, view: Array) -> int:
        return int(view.address)

    def blank(self, view: Array) -> None:
        self.gpu.set(view, 0xFF if view.dtype.kind == "f" else 0)  # all bits of a float: a NaN

    def widen(self, view: Array, out: Array) -> None:
        self.gpu.widen(view, out)

    def settle(self) -> None:
        self.gpu.wait()

    def fill(self, view: Array, family: str, key: tuple[int, int], bound: int = 0) -> None:
        self.gpu.fill(view, family, key, bound)

    def poison(self, area: Array, key: int) -> None:
        self.gpu.poison(area, key)

    def poison_intact(self, area: Array, key: int) -> bool:
        return self.gpu.poison_intact(area, key)

    def flush(self, areas: Sequence[Array]) -> None:
        self.gpu.flush()

    def compare(self, got: Array, expected: Array, magnitude: Array, factor: float, floor: float) -> Difference:
        if isinstance(expected, DeviceArray):
            return self.gpu.compare(got, expected, magnitude, factor, floor)
        return helper.compare(self.gpu.get(got), expected, magnitude, factor, floor)

    def stamp(self, areas: Sequence[Array]) -> object:
        return [self.gpu.digest(area) for area in areas]

    def is_idle(self) -> bool:
        return self.gpu.round_trip_ns() < IDLE_NS

    @property
    def take_back(self) -> int:
        return self.gpu.take_back


HOST = HostMemory()
