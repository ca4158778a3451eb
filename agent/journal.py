"""How the agent side writes files: whole JSON documents, appended JSON lines, UTC times."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def utc_now() -> str:
    """The time now as UTC ISO text with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def append_json(path: Path, record: dict[str, Any]) -> None:
    """Append one JSON line in one write, so that several processes can share the file."""
    line = json.dumps(record, allow_nan=False) + "\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


def write_private(path: Path, text: str) -> None:
    """Write a text whole or not at all, readable by the owner alone."""
    write_whole(path, text, 0o600)


def write_whole(path: Path, text: str, mode: int) -> None:
    """Write a text whole or not at all, to a file of this mode."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w", encoding="utf-8") as file:
        file.write(text)
    partial.replace(path)
