"""Reads the lines of a growing file: its last ones, and those that are added."""

import os
from dataclasses import dataclass
from pathlib import Path

_BLOCK_BYTES = 1 << 16
_SHOWN_BYTES = 4096


class NewLines:
    """Reads the whole lines that were appended to a file since the last call; none while the file is not there.

    It begins at the byte `offset`.
    """

    def __init__(self, path: Path, offset: int = 0) -> None:
        self._path = path
        self._offset = offset

    def read(self) -> list[bytes]:
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                text = file.read()
        except FileNotFoundError:
            return []
        *lines, rest = text.split(b"\n")
        self._offset += len(text) - len(rest)
        return lines


@dataclass(frozen=True)
class Tail:
    """The last lines of a file: those that are `whole`, which end at byte `offset`, and the unfinished `rest`."""

    whole: list[bytes]
    offset: int
    rest: bytes

    @property
    def lines(self) -> list[bytes]:
        return [*self.whole, self.rest] if self.rest else self.whole


def tail(path: Path, lines: int) -> Tail:
    """The last lines of a file, read from its end backwards."""
    with path.open("rb") as file:
        end = start = file.seek(0, os.SEEK_END)
        text, block_bytes = b"", _BLOCK_BYTES
        while start and text.count(b"\n") <= lines:
            start = max(0, end - block_bytes)
            file.seek(start)
            text, block_bytes = file.read(end - start), 2 * block_bytes
    *found, rest = text.split(b"\n")
    return Tail(found[-lines:] if lines else [], end - len(rest), rest if lines else b"")


def log_tail(path: Path, lines: int = 20) -> str:
    """The end of a log as a message shows it, however long its lines are, or a sentence that there is none."""
    try:
        with path.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - _SHOWN_BYTES))
            text = log.read().decode(errors="replace")
    except FileNotFoundError:
        text = ""
    return "\n".join(text.splitlines()[-lines:]) or "(it printed nothing)"
