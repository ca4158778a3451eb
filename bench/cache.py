"""One content-keyed folder for everything that is built once: helpers, call shims, denominators, oracles."""

import hashlib
import os
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from bench.errors import EnvironmentFault


def default_cache() -> Path:
    """`KCOURT_CACHE`, else `kernelcourt` in the user's cache folder."""
    if override := os.environ.get("KCOURT_CACHE"):
        return Path(override)
    return user_cache()


def user_cache() -> Path:
    """`kernelcourt` in the user's cache folder, whatever `KCOURT_CACHE` says."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kernelcourt"


def content_key(*parts: str | bytes) -> str:
    """sha256 (hex, 32 characters) over parts whose borders cannot be confused."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(f"{len(data)}:".encode())
        digest.update(data)
    return digest.hexdigest()[:32]


@lru_cache(maxsize=1)
def processor() -> str:
    """Model and instruction set of this processor: code built with `-march=native` is keyed by it."""
    wanted = ("model name", "flags", "Features", "CPU part")
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0].splitlines()
    return "\n".join(line for line in lines if line.startswith(wanted))


def _beside(folder: Path) -> "tempfile.TemporaryDirectory[str]":
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryDirectory(dir=folder)
    except OSError as error:
        raise EnvironmentFault(
            f"{folder}: the cache cannot be written ({error.strerror}); set KCOURT_CACHE to a folder of yours"
        ) from error


def cached(folder: Path, key: str, suffix: str, make: Callable[[Path], None]) -> Path:
    """`folder/<key><suffix>`, made by `make(path)` when it is not there; appears whole or not at all.

    Raises:
        EnvironmentFault: the folder cannot be made or written.
    """
    target = folder / f"{key}{suffix}"
    return target if target.exists() else renewed(folder, key, suffix, make)


def renewed(folder: Path, key: str, suffix: str, make: Callable[[Path], None]) -> Path:
    """The same, made whether it is there or not; raises EnvironmentFault as `cached` does."""
    target = folder / f"{key}{suffix}"
    with _beside(folder) as scratch:
        fresh = Path(scratch) / f"new{suffix}"
        make(fresh)
        try:
            fresh.replace(target)
        except OSError:  # a folder that another process has made meanwhile
            if not target.is_dir():
                raise
    return target


def of_text(text: str) -> Callable[[Path], None]:
    """Makes a file of a text."""

    def make(target: Path) -> None:
        target.write_text(text, encoding="utf-8")

    return make
