"""Runs a client that tells files of its own how it goes, and puts what they say into its stream as it appears.

`python -P -m agent.harnesses.follow FILE` reads the client's `Followed` from FILE; its stdin is the client's.
"""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from agent.harnesses import Command, Launch
from agent.harnesses.stream import emit
from agent.journal import write_private
from bench import process
from bench.judge.schemas import Closed

LOOK_EVERY_S = 0.2
READY_WITHIN_S = 60.0
_CHUNK_BYTES = 64 << 10


class Followed(Closed):
    """A client and what to look at while it runs; patterns are below `root`.

    `ready` is a command whose output names the tools that are there: those of `tools` which it does name are announced
    first. `lines` are files of JSON lines, `trajectories` JSON documents with `messages` and how they ended.
    """

    argv: tuple[str, ...]
    root: Path
    tools: tuple[str, ...] = ()
    ready: tuple[str, ...] = ()
    lines: str | None = None
    trajectories: str | None = None


def follow(followed: Followed, launch: Launch, env: dict[str, str], stdin: Path | None = None) -> Command:
    """The command that runs a client so, with `env` and `stdin` as for a command of its own."""
    launch.home.mkdir(parents=True, exist_ok=True)
    told = launch.home / "follow.json"
    write_private(told, followed.model_dump_json())
    argv = (sys.executable, "-P", "-m", "agent.harnesses.follow", str(told))
    return Command(argv, env, stdin=stdin, programs=(followed.argv[0],))


class Lines:
    """New whole lines of JSON lines files; what is there at the start is old."""

    def __init__(self, root: Path, pattern: str) -> None:
        self._root, self._pattern = root, pattern
        self._read = {path: path.stat().st_size for path in root.glob(pattern)}

    def new(self) -> Iterator[bytes]:
        for path in sorted(self._root.glob(self._pattern)):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                whole, end, _ = file.read().rpartition(b"\n")
            self._read[path] = self._read.get(path, 0) + len(whole + end)
            yield from whole.splitlines()


class Trajectories:
    """New messages of JSON documents that are written anew with each, and once, how each document ended."""

    def __init__(self, root: Path, pattern: str) -> None:
        self._root, self._pattern = root, pattern
        self._told: dict[Path, int] = {}
        self._ended: set[Path] = set()

    def new(self) -> Iterator[bytes]:
        for path in sorted(self._root.glob(self._pattern)):
            with suppress(OSError, ValueError):  # it is being written
                yield from self._of(path, json.loads(path.read_bytes()))

    def _of(self, path: Path, document: Any) -> Iterator[bytes]:
        match document:
            case {"messages": [*messages], "info": {"exit_status": status}}:
                fresh = messages[self._told.get(path, 0) :]
                self._told[path] = len(messages)
            case _:
                return
        for message in fresh:
            yield json.dumps({"type": "message", "file": path.name, "message": message}).encode()
        if status and path not in self._ended:
            self._ended.add(path)
            yield json.dumps({"type": "exit", "file": path.name, "status": status, "said": _last(messages)}).encode()


def _last(messages: list[Any]) -> object:
    """What the last message of a trajectory says."""
    match messages:
        case [*_, {"content": said}]:
            return said
    return None


def main(told: str) -> int:
    """Run the client to its end; its exit code."""
    followed = Followed.model_validate_json(Path(told).read_bytes())
    # Behind a seal the tools' command comes first there; elsewhere it lies beside the interpreter.
    env = os.environ | {"PATH": os.pathsep.join((os.environ["PATH"], str(Path(sys.executable).parent)))}
    if followed.ready:
        emit("init", tools=_announced(followed, env))
    child = process.spawn(followed.argv, env=env, output=subprocess.PIPE, stdin=sys.stdin)
    signal.signal(signal.SIGTERM, lambda number, frame: child.terminate())
    watched, between_lines = _watched(followed), True
    for chunk in _output(child):
        between_lines = chunk.endswith(b"\n") if chunk else between_lines
        _write(chunk)
        if between_lines:
            _write(b"".join(line + b"\n" for source in watched for line in source.new()))
    if not between_lines:
        _write(b"\n")
        _write(b"".join(line + b"\n" for source in watched for line in source.new()))
    code = child.wait()
    emit("exited", code=code)
    return code if code >= 0 else 128 - code


def _announced(followed: Followed, env: dict[str, str]) -> list[str]:
    said = process.run(followed.ready, limits=process.Limits(wall_s=READY_WITHIN_S), env=env).output
    words = set("".join(letter if letter.isalnum() or letter == "_" else " " for letter in said).split())
    return [tool for tool in followed.tools if tool in words]


def _watched(followed: Followed) -> list[Lines | Trajectories]:
    lines = [Lines(followed.root, followed.lines)] if followed.lines else []
    return [*lines, *([Trajectories(followed.root, followed.trajectories)] if followed.trajectories else [])]


def _output(child: "subprocess.Popen[bytes]") -> Iterator[bytes]:
    """What the client prints; an empty chunk when it has been silent for a moment, and at its end."""
    assert child.stdout is not None
    while True:
        if not select.select([child.stdout], [], [], LOOK_EVERY_S)[0]:
            yield b""
            if child.poll() is not None:
                break  # what it left behind may hold its stream open
        elif chunk := os.read(child.stdout.fileno(), _CHUNK_BYTES):
            yield chunk
        else:
            break
    child.wait()
    yield b""


def _write(data: bytes) -> None:
    if data:
        sys.stdout.buffer.write(data)
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
