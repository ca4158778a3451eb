"""Processes that a test looks for: sleepers of a name of their own, and whether a process has ended."""

import contextlib
import os
import select
import uuid
from collections.abc import Iterable

import psutil


def new_nap() -> str:
    """Seconds that no other process of this machine sleeps: a name for one's sleepers."""
    return f"6{uuid.uuid4().int % 10**9:09}"


def sleepers(nap: str) -> list[int]:
    """Process ids of the sleepers of that name."""
    return [process.pid for process in psutil.process_iter(["cmdline"]) if nap in (process.info["cmdline"] or [])]


def ended(pids: Iterable[int], within_s: float = 60) -> bool:
    """Whether all of them end in time; one that nobody has reaped yet has ended."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            watched = os.pidfd_open(pid)
            try:
                if not select.select([watched], [], [], within_s)[0]:
                    return False
            finally:
                os.close(watched)
    return True


def family(pid: int, word: str = "", recursive: bool = True) -> list[psutil.Process]:
    """Descendants of a process that live, with `word` among their arguments; they may end while they are looked at."""
    found: list[psutil.Process] = []
    with contextlib.suppress(psutil.NoSuchProcess):
        for child in psutil.Process(pid).children(recursive=recursive):
            with contextlib.suppress(psutil.NoSuchProcess):  # a zombie is such a one too
                if child.status() != psutil.STATUS_ZOMBIE and (not word or word in child.cmdline()):
                    found.append(child)
    return found


def gone(nap: str) -> bool:
    """Whether the sleepers of that name have ended, or do so at once."""
    return ended(sleepers(nap))
