"""What the kernel tells of a stopped runner: where it stands, how it handles signals, what its other threads have done.

Whatever the submission says of itself is in pages that it can write; this is not.
"""

import contextlib
import os
from dataclasses import dataclass
from typing import Self

# The waiting loop is a few instructions long; its stack frame may be pushed when we look, or not.
LOOP_BYTES, FRAME_BYTES = 256, 64
# A pool's threads go to sleep after their barrier, some of them only when they are woken again.
IDLE_NS = 200_000
# glibc catches signals 32 and 33 for itself once a thread is started.
_THREADING_SIGNALS = 0b11 << 31
_SIGNAL_MASKS = (b"SigBlk", b"SigIgn", b"SigCgt")


@dataclass(frozen=True)
class Stance:
    """One look at a stopped process.

    `place` is stack pointer and program counter of its main thread, None where the kernel does not tell;
    `signals` are the blocked, the ignored and the caught ones, a bit each.
    """

    place: tuple[int, int] | None
    signals: tuple[int, ...]

    @classmethod
    def of(cls, pid: int) -> Self:
        return cls(_place(pid), _signals(pid))

    def departure(self, now: "Stance") -> str | None:
        """What is other `now` than in this stance of the same runner between its empty calls, in words, or None."""
        if now.signals != self.signals:
            return "signal handlers or masks; leave them as they are"
        if self.place and now.place:
            moved = [abs(here - there) for here, there in zip(now.place, self.place, strict=True)]
            if moved[0] > FRAME_BYTES or moved[1] > LOOP_BYTES:
                return "where its thread waits: it said that it was done and had not returned; return to the caller"
        return None


def stopped(pid: int) -> bool:
    """Whether every thread is stopped or the process is gone. It may be no child of ours: waitid cannot tell."""
    return all(_state(pid, thread) in "TtZX" for thread in threads(pid))


def threads(pid: int) -> list[str]:
    """Ids of a process's threads, empty when it is gone."""
    with contextlib.suppress(FileNotFoundError):
        return os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - see `proc`
    return []


def others_ns(pid: int) -> int:
    """CPU time (ns) that all threads but the main one have had so far; those that have ended count no more."""
    return sum(_schedstat(pid, thread)[0] for thread in threads(pid) if thread != str(pid))


def waited_ns(pid: int) -> int:
    """How long (ns) the main thread has stood ready without a core, in all its life, as the kernel counts it."""
    return _schedstat(pid, str(pid))[1]


def _schedstat(pid: int, thread: str) -> tuple[int, int]:
    figures = proc(f"{pid}/task/{thread}/schedstat").split()
    return (int(figures[0]), int(figures[1])) if len(figures) == 3 else (0, 0)


def _place(pid: int) -> tuple[int, int] | None:
    """`-1 <stack pointer> <program counter>` is what /proc says of a thread that is stopped outside any call."""
    words = proc(f"{pid}/syscall").split()
    return (int(words[1], 16), int(words[2], 16)) if len(words) == 3 else None


def _signals(pid: int) -> tuple[int, ...]:
    lines = proc(f"{pid}/status").splitlines()
    return tuple(int(line.split()[1], 16) & ~_THREADING_SIGNALS for line in lines if line.startswith(_SIGNAL_MASKS))


def _state(pid: int, thread: str) -> str:
    """One letter: what the kernel says a thread is doing; Z when it is gone."""
    return (proc(f"{pid}/task/{thread}/stat").rpartition(b")")[2].split() or [b"Z"])[0].decode()


def proc(name: str) -> bytes:
    """Content of a file of /proc, empty when its process is gone. Read after every call: pathlib would cost as much
    as the call itself."""
    try:
        fd = os.open(f"/proc/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(fd, 4096)
    except OSError:
        return b""
    finally:
        os.close(fd)
