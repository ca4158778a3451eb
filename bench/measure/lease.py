"""The host-wide timing lease: slots that share cores never time at once, whichever process or user they belong to."""

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.errors import EnvironmentFault


def _lock_file(core: int, part: str) -> Path:
    return Path(os.environ.get("KCOURT_LEASE_DIR") or tempfile.gettempdir()) / f"kernelcourt-core-{core}.{part}"


def _open(path: Path) -> int:
    """Open a lock file that another user may have made: locking needs no right to write."""
    with contextlib.suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDONLY | os.O_CLOEXEC, 0o644))
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise EnvironmentFault(
            f"{path}: the timing lease cannot be opened ({error.strerror}); "
            "set KCOURT_LEASE_DIR to a folder that all judges share"
        ) from error


def _locked(core: int, part: str) -> int:
    """The descriptor of a lock file, once nobody else holds it."""
    fd = _open(_lock_file(core, part))
    fcntl.flock(fd, fcntl.LOCK_EX)
    return fd


@contextlib.contextmanager
def timing_lease(cores: Sequence[int]) -> Iterator[None]:
    """Hold these cores for timing; waits for whoever holds one of them. Linux frees it when its holder dies.

    flock gives a lock to whoever asks first once it is free, so that one who gives it back and asks at once would
    keep all others waiting. Hence a turnstile: who waits for a core stands in it, and who comes back waits behind.

    Raises:
        EnvironmentFault: a lock file can be neither made nor opened.
    """
    held: list[int] = []
    try:
        # Ascending order, so that two slots with overlapping sets cannot wait for each other.
        for core in sorted(set(cores)):
            turnstile = _locked(core, "next")
            try:
                held.append(_locked(core, "lock"))
            finally:
                os.close(turnstile)
        yield
    finally:
        for fd in reversed(held):
            os.close(fd)
