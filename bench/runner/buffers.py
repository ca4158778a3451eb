"""The judge's buffers that runners borrow: sealed memfds with canaries around what a kernel may touch."""

import contextlib
import fcntl
import math
import mmap
import os
from collections.abc import Iterable
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.errors import EnvironmentFault
from bench.native import helper
from bench.task import Sizes, Task

ALIGNMENT = 64
CANARY_BYTES = 4096
_F_ADD_SEALS, _SEAL, _SHRINK, _GROW, _FUTURE_WRITE = 1033, 0x1, 0x2, 0x4, 0x10


class Placement(StrEnum):
    """Where an array lies in its buffer: amid canaries, or flush against the guard page before or behind it."""

    MIDDLE = "middle"
    HEAD = "head"
    TAIL = "tail"


class Buffer:
    """One memfd of at least `capacity` bytes, mapped writable here and, in runners, as its role allows."""

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
        self.bytes: NDArray[np.uint8] = np.frombuffer(self._map, np.uint8)
        # FUTURE_WRITE comes after our own mapping: from here on nobody can map an input writable.
        seals = _SEAL | _SHRINK | _GROW | (0 if writable else _FUTURE_WRITE)
        fcntl.fcntl(self.fd, _F_ADD_SEALS, seals)

    def offset(self, nbytes: int, placement: Placement) -> int:
        """Byte offset, a multiple of 64, of an array of `nbytes` under a placement."""
        match placement:
            case Placement.HEAD:
                return 0
            case Placement.TAIL:
                return (self.size - nbytes) // ALIGNMENT * ALIGNMENT
            case Placement.MIDDLE:
                return CANARY_BYTES

    def slack(self, offset: int, nbytes: int) -> Iterable[NDArray[np.uint8]]:
        """The canary areas before and behind an array."""
        end = offset + nbytes
        yield self.bytes[max(offset - CANARY_BYTES, 0) : offset]
        yield self.bytes[end : min(end + CANARY_BYTES, self.size)]

    def close(self) -> None:
        del self.bytes
        # A verdict in flight may still hold views in its frames; the mapping goes with the last of them.
        with contextlib.suppress(BufferError):
            self._map.close()
        os.close(self.fd)


def bytes_of(task: Task, name: str, sizes: Sizes) -> int:
    """Bytes of one array argument at the given sizes."""
    return math.prod(task.shape(name, sizes)) * np.dtype(task.arguments[name].dtype).itemsize


class Arena:
    """Buffers of every array of a task, big enough for all sizes of a grade's plan; both sides borrow the same."""

    def __init__(self, task: Task, plan: Iterable[Sizes], workspace_bytes: int = 0) -> None:
        sizes = list(plan)
        self.task = task
        self.workspace_bytes = workspace_bytes
        with contextlib.ExitStack() as made:
            self.buffers = {
                name: made.enter_context(contextlib.closing(Buffer(name, capacity, argument.is_output)))
                for name, argument in task.arrays.items()
                for capacity in [max(bytes_of(task, name, s) for s in sizes)]
            }
            self.workspace = None
            if workspace_bytes:
                self.workspace = made.enter_context(contextlib.closing(Buffer("workspace", workspace_bytes, True)))
            self.close = made.pop_all().close

    def lent(self, workspace: bool) -> list[Buffer]:
        """What a runner borrows: a buffer for each array, and the workspace of a submission that asked for one."""
        return [*self.buffers.values(), *([self.workspace] if self.workspace and workspace else [])]

    def descriptions(self, workspace: bool) -> list[str]:
        """One word an argument for a runner's command line: `fd:bytes:writable`, or `-` where it is no array."""
        arrays = [self.buffers.get(name) for name in self.task.arguments]
        lent = [*arrays, *([self.workspace] if self.workspace and workspace else [])]
        return [f"{buffer.fd}:{buffer.size}:{int(buffer.writable)}" if buffer else "-" for buffer in lent]

    def workspace_slots(self) -> list[int]:
        """The words that deliver the workspace behind the arguments: its offset and its bytes."""
        return [CANARY_BYTES, self.workspace_bytes] if self.workspace else []

    def poison_workspace(self, key: int) -> None:
        """Random bits in the whole workspace buffer: nothing learnt in one call helps another."""
        if self.workspace:
            helper.poison(self.workspace.bytes, key)

    def workspace_overrun(self, key: int) -> bool:
        """Whether something beside the workspace itself was written in its buffer."""
        if not self.workspace:
            return False
        # `poison` works in words of 8 bytes whose value depends on the place: the tail starts at a whole one.
        end = -(-(CANARY_BYTES + self.workspace_bytes) // 8) * 8
        head, tail = self.workspace.bytes[:CANARY_BYTES], self.workspace.bytes[end:]
        return not helper.poison_intact(head, key) or not helper.poison_intact(tail, key + end)

    def offsets(self, sizes: Sizes, placement: Placement) -> dict[str, int]:
        return {
            name: buffer.offset(bytes_of(self.task, name, sizes), placement) for name, buffer in self.buffers.items()
        }

    def views(self, sizes: Sizes, offsets: dict[str, int]) -> dict[str, NDArray[Any]]:
        """The arrays themselves, as contiguous views in the buffers."""
        views: dict[str, NDArray[Any]] = {}
        for name, offset in offsets.items():
            nbytes = bytes_of(self.task, name, sizes)
            raw = self.buffers[name].bytes[offset : offset + nbytes]
            views[name] = raw.view(str(self.task.arguments[name].dtype)).reshape(self.task.shape(name, sizes))
        return views

    def plant_canaries(self, views: dict[str, NDArray[Any]], offsets: dict[str, int], key: int) -> None:
        for name, offset in offsets.items():
            for area in self.buffers[name].slack(offset, views[name].nbytes):
                helper.poison(area, key)

    def broken_canary(self, views: dict[str, NDArray[Any]], offsets: dict[str, int], key: int) -> str | None:
        """Name of the first argument around which something was written, or None."""
        for name, offset in offsets.items():
            areas = self.buffers[name].slack(offset, views[name].nbytes)
            if not all(helper.poison_intact(area, key) for area in areas):
                return name
        return None
