"""The judge's buffers that runners borrow, one an array of a kernel, with canaries around what it may touch."""

import contextlib
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bench.dtypes import numpy_dtype
from bench.runner.memory import CANARY_BYTES, HOST, Array, Buffer, Memory, Placement
from bench.task import POINTER_FAMILIES, Argument, Role, Sizes, Task


def bytes_of(task: Task, name: str, sizes: Sizes) -> int:
    """Bytes of one array argument at the given sizes."""
    return math.prod(task.shape(name, sizes)) * numpy_dtype(str(task.arguments[name].dtype)).itemsize


class Arena:
    """Buffers of every array of a task, big enough for all sizes of a grade's plan; both sides borrow the same."""

    def __init__(self, task: Task, plan: Iterable[Sizes], workspace_bytes: int = 0, memory: Memory = HOST) -> None:
        sizes = list(plan)
        self.task = task
        self.memory = memory
        self.planned = sizes
        self.workspace_bytes = workspace_bytes
        with contextlib.ExitStack() as made:
            self.buffers = {
                name: made.enter_context(contextlib.closing(memory.buffer(name, capacity, argument.is_output)))
                for name, argument in task.arrays.items()
                for capacity in [max(bytes_of(task, name, s) for s in sizes)]
            }
            self.workspace = None
            if workspace_bytes:
                self.workspace = made.enter_context(
                    contextlib.closing(memory.buffer("workspace", workspace_bytes, True))
                )
            self.close = made.pop_all().close

    def lent(self, workspace: bool) -> list[Buffer]:
        """What a runner borrows: a buffer for each array, and the workspace of a submission that asked for one."""
        return [*self.buffers.values(), *([self.workspace] if self.workspace and workspace else [])]

    def descriptions(self, workspace: bool) -> list[str]:
        """One word an argument for a runner's command line: `fd:bytes:writable`, or `-` where it is no array."""
        arrays = [self.buffers.get(name) for name in self.task.arguments]
        lent = [*arrays, *([self.workspace] if self.workspace and workspace else [])]
        return [f"{buffer.fd}:{buffer.size}:{int(buffer.writable)}" if buffer else "-" for buffer in lent]

    def rehearsals(self, workspace: bool, planned: Sequence[Sizes]) -> list[dict[str, Any]]:
        """For each of the `planned` sizes the words of a call without values: scalars are 1, offsets 0.

        `ends` is what row pointers end in, by the number of their argument.
        """
        tail = [0, self.workspace_bytes] if workspace else []
        arguments = self.task.arguments
        return [
            {
                "slots": [*(self._planned_word(name, argument, sizes) for name, argument in arguments.items()), *tail],
                "ends": {
                    number: int(argument.bound(sizes))
                    for number, argument in enumerate(arguments.values())
                    if argument.bound and POINTER_FAMILIES.issuperset(argument.values)
                },
            }
            for sizes in map(dict, dict.fromkeys(tuple(sorted(one.items())) for one in planned))
        ]

    @staticmethod
    def _planned_word(name: str, argument: Argument, sizes: Sizes) -> int:
        if argument.is_array:
            return 0
        one = np.ones(1, argument.dtype or "int64")
        return sizes[name] if argument.role is Role.SIZE else int.from_bytes(one.tobytes(), "little")

    def workspace_slots(self) -> list[int]:
        """The words that deliver the workspace behind the arguments: its offset and its bytes."""
        return [CANARY_BYTES, self.workspace_bytes] if self.workspace else []

    def poison_workspace(self, key: int) -> None:
        """Random bits in the whole workspace buffer: nothing learnt in one call helps another."""
        if self.workspace:
            self.memory.poison(self.workspace.bytes, key)

    def workspace_overrun(self, key: int) -> bool:
        """Whether something beside the workspace itself was written in its buffer."""
        if not self.workspace:
            return False
        # `poison` works in words of 8 bytes whose value depends on the place: the tail starts at a whole one.
        end = -(-(CANARY_BYTES + self.workspace_bytes) // 8) * 8
        head, tail = self.workspace.bytes[:CANARY_BYTES], self.workspace.bytes[end:]
        return not self.memory.poison_intact(head, key) or not self.memory.poison_intact(tail, key + end)

    def offsets(self, sizes: Sizes, placement: Placement) -> dict[str, int]:
        return {
            name: buffer.offset(bytes_of(self.task, name, sizes), placement) for name, buffer in self.buffers.items()
        }

    def views(self, sizes: Sizes, offsets: dict[str, int]) -> dict[str, Array]:
        """The arrays themselves, as contiguous views in the buffers."""
        views: dict[str, Array] = {}
        for name, offset in offsets.items():
            nbytes = bytes_of(self.task, name, sizes)
            raw = self.buffers[name].bytes[offset : offset + nbytes]
            dtype = numpy_dtype(str(self.task.arguments[name].dtype))
            views[name] = raw.view(dtype).reshape(self.task.shape(name, sizes))
        return views

    def plant_canaries(self, views: dict[str, Array], offsets: dict[str, int], key: int) -> None:
        for name, offset in offsets.items():
            for area in self.buffers[name].slack(offset, views[name].nbytes):
                self.memory.poison(area, key)

    def broken_canary(self, views: dict[str, Array], offsets: dict[str, int], key: int) -> str | None:
        """Name of the first argument around which something was written, or None."""
        for name, offset in offsets.items():
            areas = self.buffers[name].slack(offset, views[name].nbytes)
            if not all(self.memory.poison_intact(area, key) for area in areas):
                return name
        return None
