"""What Linux tells of a runner: whether it is stopped, where it stands, how it handles signals, how long it has run.
The submission can write to the control page, but not to this."""

import contextlib
import fnmatch
import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

# The waiting loop is a few instructions long; its stack frame may be pushed when we look, or not.
LOOP_BYTES, FRAME_BYTES = 256, 64
# glibc catches signals 32 and 33 for itself once a thread is started.
_THREADING_SIGNALS = 0b11 << 31
_SIGNAL_MASKS = (b"SigBlk", b"SigIgn", b"SigCgt")

Pages = tuple[tuple[int, bytes], ...]


@dataclass(frozen=True)
class Stance:
    """One look at a stopped process.

    `place` is stack pointer and program counter of its main thread, None where Linux does not tell; `returns_to` where
    its waiting loop will go on from there, for a stack pointer as it was at home; `signals` are the blocked, the
    ignored and the caught ones, a bit each.
    """

    place: tuple[int, int] | None
    returns_to: bytes
    signals: tuple[int, ...]

    def departure(self, now: "Stance") -> str | None:
        """What is other `now` than in this stance of the same runner between its empty calls, in words, or None."""
        if now.signals != self.signals:
            return "signal handlers or masks; leave them as they are"
        if self.place and now.place:
            moved = [abs(here - there) for here, there in zip(now.place, self.place, strict=True)]
            if moved[0] > FRAME_BYTES or moved[1] > LOOP_BYTES or now.returns_to != self.returns_to:
                return "where its thread waits: it said that it was done and had not returned; return to the caller"
        return None


class Watched:
    """One process as /proc shows it. Looked at after every call, so that its files stay open."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._files = contextlib.ExitStack()
        self._stat, self._schedstat, self._status, self._syscall, self._memory = (
            self._opened(name) for name in ("stat", f"task/{pid}/schedstat", "status", "syscall", "mem")
        )

    def _opened(self, name: str) -> int:
        """A descriptor, or -1 where there is no such file: reading it gives nothing."""
        try:
            fd = os.open(f"/proc/{self.pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return -1
        self._files.callback(os.close, fd)
        return fd

    def stopped(self) -> bool:
        """Whether every thread is stopped or the process is gone. It may be no child of ours: waitid cannot tell."""
        state, count = self._main()
        if state not in "TtZX":
            return False
        return count <= 1 or all(_state(self.pid, thread) in "TtZX" for thread in self._others())

    def held(self) -> bool:
        """Whether the main thread is stopped, and not gone."""
        return self._main()[0] in "Tt"

    def gone(self) -> bool:
        """Whether the process has ended, be what is to reap it stopped or not."""
        state, count = self._main()
        return state in "ZX" and count <= 1

    def threads(self) -> int:
        """How many threads it has."""
        return self._main()[1]

    def alone(self) -> bool:
        """Whether the main thread is the only one."""
        return self.threads() <= 1

    def ran_and_waited_ns(self) -> tuple[int, int]:
        """How long (ns) the main thread has had a core, and has stood ready without one, in all its life.

        Exact for a stopped one only; both are 0 where Linux does not count. What a hypervisor took away is in
        neither.
        """
        return _figures(_again(self._schedstat))

    def stance(self, home: Stance | None = None) -> Stance:
        """Where the stopped process stands; `home` is where it stood between its empty calls."""
        # `-1 <stack pointer> <program counter>` is what /proc says of a thread that is stopped outside any call.
        words = _again(self._syscall).split()
        place = (int(words[1], 16), int(words[2], 16)) if len(words) == 3 else None
        lines = _again(self._status).splitlines()
        stack = (home.place if home else place) or (0, 0)
        masks = [int(line.split()[1], 16) & ~_THREADING_SIGNALS for line in lines if line.startswith(_SIGNAL_MASKS)]
        return Stance(place, _again(self._memory, stack[0], 8), tuple(masks))

    def pages_of(self, globs: Collection[str]) -> Pages:
        """What it has mapped of libraries of such names and cannot write to: code and constants, by address."""
        found = []
        for line in self._maps() if globs else ():
            span, access, *others = line.split()
            name = others[-1].rpartition("/")[2]
            if "w" not in access and any(fnmatch.fnmatch(name, glob) for glob in globs):
                first, last = (int(end, 16) for end in span.split("-"))
                found.append((first, _again(self._memory, first, last - first)))
        return tuple(found)

    def _maps(self) -> list[str]:
        with contextlib.suppress(OSError):
            return Path(f"/proc/{self.pid}/maps").read_text(encoding="utf-8", errors="replace").splitlines()
        return []

    def changed(self, pages: Pages) -> bool:
        """Whether any of them is other than it was."""
        return any(_again(self._memory, at, len(held)) != held for at, held in pages)

    def _main(self) -> tuple[str, int]:
        """State of the main thread (one letter; Z when it is gone), and how many threads there are."""
        words = _again(self._stat).rpartition(b")")[2].split()
        return (words[0].decode(), int(words[17])) if len(words) > 17 else ("Z", 0)

    def _others(self) -> list[str]:
        with contextlib.suppress(FileNotFoundError):
            return [name for name in os.listdir(f"/proc/{self.pid}/task") if name != str(self.pid)]  # noqa: PTH208
        return []

    def close(self) -> None:
        self._files.close()


def _state(pid: int, thread: str) -> str:
    return (_read(f"/proc/{pid}/task/{thread}/stat").rpartition(b")")[2].split() or [b"Z"])[0].decode()


def _figures(schedstat: bytes) -> tuple[int, int]:
    """Time (ns) that a thread has run, and that it has waited for a core."""
    figures = schedstat.split()
    return (int(figures[0]), int(figures[1])) if len(figures) == 3 else (0, 0)


def _again(fd: int, at: int = 0, nbytes: int = 4096) -> bytes:
    """Content of an open file of /proc as it is now, empty when its process is gone or it does not tell."""
    try:
        return os.pread(fd, nbytes, at)
    except (OSError, OverflowError):
        return b""


def _read(path: str) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return _again(fd)
    finally:
        os.close(fd)
