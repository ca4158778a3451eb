"""The agents' folders: a fresh one an attempt, numbered over the whole run, and what is kept of it."""

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

from agent.journal import append_json

# What is kept of a workspace: enough for every source, not for an agent's build trees and core dumps.
KEPT_FILE_BYTES = 16 << 20
KEPT_TOTAL_BYTES = 64 << 20


def fresh_folder(shared: Path, material: Path, folders_file: Path, label: str, attempt: int) -> Path:
    """Make `<shared>/agent-<n>/` with a copy of `material`, and note whose it is in `folders_file`.

    n counts every attempt of the run: making the folder is what claims a number, on whichever node.

    Raises:
        OSError: the folder cannot be made or filled.
    """
    number, folder = _claim(shared)
    shutil.copytree(material, folder, dirs_exist_ok=True)
    for path in (folder, *folder.rglob("*")):
        # Material is staged read-only; the copy is the agent's own.
        path.chmod(path.stat().st_mode | stat.S_IWUSR)
    append_json(folders_file, {"n": number, "label": label, "attempt": attempt, "path": str(folder)})
    return folder


def _claim(shared: Path) -> tuple[int, Path]:
    number = 1 + max((_number(path) for path in shared.glob("agent-*")), default=0)
    while True:
        folder = shared / f"agent-{number}"
        try:
            folder.mkdir()
        except FileExistsError:
            number += 1
        else:
            return number, folder


def _number(folder: Path) -> int:
    tail = folder.name.removeprefix("agent-")
    return int(tail) if tail.isdigit() else 0


def keep_workspace(folder: Path, target: Path) -> list[str]:
    """Copy an agent's folder as it is now; returns what could not be kept, one reason each.

    Links stay links, special files and files beyond the caps are left out.
    """
    left_out: list[str] = []
    try:
        shutil.copytree(folder, target, symlinks=True, ignore=_capped(left_out), dirs_exist_ok=True)
    except shutil.Error as error:
        left_out += [f"{source}: {reason}" for source, _, reason in error.args[0]]
    except OSError as error:
        left_out.append(str(error))
    return left_out


def _capped(left_out: list[str]) -> Callable[[str, list[str]], set[str]]:
    """A copytree `ignore` that says in `left_out` what it leaves out."""
    kept_bytes = 0

    def ignore(where: str, names: list[str]) -> set[str]:
        nonlocal kept_bytes
        ignored = set()
        for name in names:
            path = os.path.join(where, name)  # noqa: PTH118 (hot in large trees)
            reason, size = _weigh(path, KEPT_TOTAL_BYTES - kept_bytes)
            kept_bytes += size
            if reason:
                ignored.add(name)
                left_out.append(f"{path}: {reason}")
        return ignored

    return ignore


def _weigh(path: str, room_bytes: int) -> tuple[str | None, int]:
    """Why a directory entry is not kept (None: it is), and the bytes that keeping it takes."""
    try:
        status = os.lstat(path)
    except OSError as error:
        return str(error.strerror), 0
    if stat.S_ISDIR(status.st_mode) or stat.S_ISLNK(status.st_mode):
        return None, 0
    if not stat.S_ISREG(status.st_mode):
        return "not a plain file", 0
    if status.st_size > min(KEPT_FILE_BYTES, room_bytes):
        return f"{status.st_size} bytes", 0
    return None, status.st_size
