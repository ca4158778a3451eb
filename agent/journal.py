"""How the agent side writes files: whole JSON documents, appended JSON lines, UTC times."""

import json
import os
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def utc_now() -> str:
    """The time now as UTC ISO text with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def append_json(path: Path, record: dict[str, Any]) -> None:
    """Append one JSON line in one write, so that several processes can share the file.

    Raises:
        OSError: it cannot be written, or is no plain file: an agent may have put a link or a pipe in its place.
    """
    line = json.dumps(record, allow_nan=False) + "\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


def read_left(path: Path, cap_bytes: int) -> bytes | None:
    """What an agent left in a file; None unless it is a plain file of at most `cap_bytes` bytes that can be read.

    An agent may have put anything under the name: a link to what its driver may read, a pipe that blocks.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_size > cap_bytes:
        os.close(descriptor)
        return None
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def write_private(path: Path, text: str) -> None:
    """Write a text whole or not at all, readable by the owner alone."""
    write_whole(path, text, 0o600)


def write_whole(path: Path, text: str, mode: int) -> None:
    """Write a text whole or not at all, to a file of this mode."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w", encoding="utf-8") as file:
        file.write(text)
    partial.replace(path)
