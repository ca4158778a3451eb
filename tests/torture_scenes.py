"""Faults that are no kill: a full disk, an unwritable shard, a clock that jumps, no memory, clients that leave.

Each scene is played on a real rank while somebody asks it something. It ends with the fault mended and everything
answered; the account is the one of `torture.py`.
"""

import contextlib
import json
import os
import random
import resource
import socket
import sqlite3
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from judge_rank import PATIENCE_S, SECRET
from kernels import LOOP, axpy_c
from torture import Ledger, Tortured, Victim, Wish, account, ask, clear, wish

from bench.judge.client import Envelope, JudgeRefused
from bench.judge.schemas import Header, Outcome, token_for

DISK_BYTES = 6 << 20
JUMPS_S = (86400, -86400, 3600, -3600, 0)
LOCKED_S = 2.0
DAMAGED = ("unfit", "unreachable", "judge_restarting")
# Who ask while something is wrong.
ASKED_AT_ONCE = 2
# Sees its wall clock through a file of 8 bytes, the seconds that it goes wrong by; other clocks are as they are.
CLOCK_C = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static volatile int64_t *wrong_by;
__attribute__((constructor)) static void find(void) {
  int fd = open(OFFSET, O_RDONLY);
  void *at = fd < 0 ? MAP_FAILED : mmap(0, sizeof *wrong_by, PROT_READ, MAP_SHARED, fd, 0);
  if (at != MAP_FAILED) wrong_by = at;
  if (fd >= 0) close(fd);
}
int clock_gettime(clockid_t clock, struct timespec *now) {
  int failed = (int)syscall(SYS_clock_gettime, clock, now);
  if (!failed && wrong_by && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += *wrong_by;
  return failed;
}
time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}
int gettimeofday(struct timeval *restrict at, void *restrict zone) {
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  *at = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
  return 0;
}
"""


class NotHere(Exception):
    """A scene cannot be played on this machine; the text says why."""


@dataclass
class Stage:
    """A rank on a file system of its own, where that can be made, whose judge reads a clock that we set."""

    tortured: Tortured
    folder: Path
    disk: Path
    is_mounted: bool
    ledger: Ledger = field(default_factory=Ledger)
    rng: random.Random = field(default_factory=lambda: random.Random(1))
    accounts: int = 0

    @property
    def shard(self) -> Path:
        return self.tortured.rank.shard

    def label(self, setup: str = "many") -> str:
        return f"{setup}.n0.p0.w{self.rng.getrandbits(29)}"

    def wish(self, label: str | None = None, route: str | None = None) -> Wish:
        wanted = wish(self.rng, self.tortured.number, label or self.label(), route)
        self.ledger.wishes.append(wanted)
        return wanted

    def ask(self, wanted: Wish) -> str:
        """Ask until the answer counts; its grade's id, or nothing when none came."""
        with self.tortured.client(wanted.label, attempts=1, timeout_s=PATIENCE_S) as client:
            answer = ask(client, wanted, self.ledger)
        return answer.grade_id if answer else ""

    @contextlib.contextmanager
    def asked(self, count: int = ASKED_AT_ONCE) -> Iterator[list[threading.Thread]]:
        """Some who ask meanwhile; the block mends the fault, and they are answered after it."""
        threads = [threading.Thread(target=self.ask, args=(self.wish(),), daemon=True) for _ in range(count)]
        for thread in threads:
            thread.start()
        yield threads
        for thread in threads:
            thread.join(2 * PATIENCE_S)

    def set_clock(self, wrong_by_s: int) -> None:
        with (self.folder / "offset").open("r+b") as file:
            file.write(struct.pack("q", wrong_by_s))

    def wrongs(self) -> list[str]:
        """What is not as it should be so far."""
        self.accounts += 1
        found = account([self.shard], self.folder / f"results-{self.accounts}.db", self.ledger)
        refused = [f"{wanted.label} was refused: {why.message}" for wanted, why in self.ledger.refused]
        return [*found.wrongs, *refused, *(f"{wanted.label} got no answer" for wanted in self.ledger.unanswered)]


@contextlib.contextmanager
def stage(folder: Path) -> Iterator[Stage]:
    """A healthy rank for scenes; it has ended when the block has."""
    disk = folder / "disk"
    disk.mkdir(parents=True)
    with contextlib.ExitStack() as stack:
        is_mounted = mounted(["-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs"], disk)
        if is_mounted:
            stack.callback(unmount, disk)
        stack.callback(clear, folder)
        tortured = Tortured(disk / "rank", clock=clock_library(folder), scratch=folder / "scratch")
        stack.callback(tortured.close)
        tortured.rank.wait_until_healthy()
        yield Stage(tortured, folder, disk, is_mounted)


def clock_library(folder: Path) -> Path:
    """Build the library that goes wrong by what is in the file `offset`."""
    offset, source, library = folder / "offset", folder / "clock.c", folder / "clock.so"
    offset.write_bytes(bytes(8))
    source.write_text(CLOCK_C)
    define = f"-DOFFSET={json.dumps(str(offset))}"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", define, source, "-o", library], check=True)
    return library


def mounted(options: Sequence[str], at: Path) -> bool:
    """Whether something could be mounted there; only root can."""
    return subprocess.run(["mount", *options, str(at)], capture_output=True).returncode == 0


def unmount(at: Path) -> None:
    subprocess.run(["umount", "--lazy", str(at)], check=True)


def until(happens: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not happens():
        assert time.monotonic() < deadline, f"{what} never came"
        time.sleep(0.01)


def until_refused(stage: Stage) -> None:
    """Wait until somebody who asks is told that the judge cannot keep grades, or that it is gone."""
    before = {code: stage.ledger.codes[code] for code in DAMAGED}
    until(lambda: any(stage.ledger.codes[code] > before[code] for code in DAMAGED), "a refusal")


# Scenes


def full_disk(stage: Stage) -> None:
    """The file system of shard and logs has no byte left; then it has."""
    if not stage.is_mounted:
        raise NotHere("a small file system can be mounted by root alone")
    filler = stage.disk / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        for size in (1 << 16, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while file.write(bytes(size)) == size:
                    pass
    with stage.asked():
        until_refused(stage)
        filler.unlink()


def read_only_shard(stage: Stage) -> None:
    """The shard's folder cannot be written to, whoever tries; then it can."""
    folder = stage.shard.parent
    if os.getuid():
        folder.chmod(0o555)
    elif mounted(["--bind", str(folder)], folder):
        subprocess.run(["mount", "-o", "remount,bind,ro", str(folder)], check=True)
    else:
        raise NotHere("a folder cannot be mounted read-only here, and nothing else keeps root from writing to it")
    with stage.asked():
        try:
            until_refused(stage)
        finally:
            folder.chmod(0o755) if os.getuid() else unmount(folder)


def locked_shard(stage: Stage) -> None:
    """Another process holds the whole database for a while; nobody is answered meanwhile."""
    with contextlib.closing(sqlite3.connect(stage.shard, isolation_level=None, timeout=PATIENCE_S)) as other:
        other.execute("BEGIN EXCLUSIVE")
        before = len(stage.ledger.answers)
        with stage.asked():
            time.sleep(LOCKED_S)
            answered = len(stage.ledger.answers) - before
            other.execute("ROLLBACK")
    assert answered == 0, "a grade was answered that could not be recorded"


def jumping_clock(stage: Stage) -> None:
    """The wall clock is a day or an hour off, to either side; keys and single submits are known all the same."""
    first = stage.wish()
    grade_id = stage.ask(first)
    only = stage.wish(stage.label("solo"), "submit")
    try:
        for jump_s in JUMPS_S:
            with stage.asked(1):
                stage.set_clock(jump_s)
            assert stage.ask(first) == grade_id, "a key that was answered was answered otherwise"
            only_id = stage.ask(only)
            with stage.tortured.client(only.label) as client:
                try:
                    client.submit(only.body, Envelope())
                except JudgeRefused as refused:
                    assert refused.code == "already_submitted" and only_id in refused.message
                else:
                    raise AssertionError(f"a second submit was accepted with a clock {jump_s} s off")
    finally:
        stage.set_clock(0)


def little_memory(stage: Stage) -> None:
    """The measuring process may hold hardly more memory than it does; then it may, if it lives."""
    (pid,) = stage.tortured.victims()[Victim.MEASURING]
    size_bytes = int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * resource.getpagesize()
    _, hard = resource.prlimit(pid, resource.RLIMIT_AS)
    resource.prlimit(pid, resource.RLIMIT_AS, (size_bytes + (1 << 20), hard))
    faults = stage.ledger.faults()
    with stage.asked() as threads:
        until(lambda: stage.ledger.faults() > faults or not any(t.is_alive() for t in threads), "an end of a grade")
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_AS, (hard, hard))


def leaving_clients(stage: Stage) -> None:
    """Clients leave at every stage of a request; who comes back with the key is answered, and graded once."""
    slow = axpy_c(f"for (volatile long spin = 0; spin < 3000000; spin++); {LOOP}")
    for moment in MOMENTS:
        wanted = stage.wish(route="score" if moment == "when it is graded" else "submit")
        if moment == "when it is graded":
            wanted = Wish(
                wanted.rank, wanted.label, wanted.route, f"// {wanted.key}\n{slow}", Outcome.SOLVED, wanted.key
            )
            stage.ledger.wishes[-1] = wanted
        head, body = letter(wanted)
        with socket.create_connection(("127.0.0.1", stage.tortured.rank.port), PATIENCE_S) as leaver:
            MOMENTS[moment](stage, leaver, head, body)
        stage.ask(wanted)


def letter(wanted: Wish) -> tuple[bytes, bytes]:
    body = json.dumps(wanted.body).encode()
    fields = {
        "Host": "judge",
        "Authorization": f"Bearer {token_for(SECRET, wanted.label)}",
        "Content-Length": str(len(body)),
        str(Header.IDEMPOTENCY): wanted.key,
    }
    lines = [f"POST /{wanted.route} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode(), body


def _when(stage: Stage, victim: Victim) -> None:
    """Wait until the grade has come so far; it may be past that before we look."""
    deadline = time.monotonic() + 2.0
    while not stage.tortured.victims()[victim] and time.monotonic() < deadline:
        time.sleep(0.002)


def _at_compiler(stage: Stage, leaver: socket.socket, head: bytes, body: bytes) -> None:
    leaver.sendall(head + body)
    _when(stage, Victim.COMPILER)


def _at_runner(stage: Stage, leaver: socket.socket, head: bytes, body: bytes) -> None:
    leaver.sendall(head + body)
    _when(stage, Victim.RUNNER)
    time.sleep(0.2)


def _in_answer(stage: Stage, leaver: socket.socket, head: bytes, body: bytes) -> None:
    leaver.sendall(head + body)
    leaver.recv(20)


MOMENTS: dict[str, Callable[[Stage, socket.socket, bytes, bytes], object]] = {
    "before a word": lambda stage, leaver, head, body: None,
    "in the head": lambda stage, leaver, head, body: leaver.sendall(head[: len(head) // 2]),
    "before the body": lambda stage, leaver, head, body: leaver.sendall(head),
    "in the body": lambda stage, leaver, head, body: leaver.sendall(head + body[: len(body) // 2]),
    "at once": lambda stage, leaver, head, body: leaver.sendall(head + body),
    "when it is compiled": _at_compiler,
    "when it is graded": _at_runner,
    "in the answer": _in_answer,
}
SCENES = (leaving_clients, locked_shard, jumping_clock, read_only_shard, little_memory, full_disk)


def play_all(folder: Path, told: Callable[[str], None]) -> list[str]:
    """Play every scene on one rank; what was wrong."""
    wrongs: list[str] = []
    with stage(folder) as one:
        for scene in SCENES:
            try:
                scene(one)
                found = [wrong for wrong in one.wrongs() if wrong not in wrongs]
                told(f"{scene.__name__}: {'; '.join(found) or 'nothing lost, doubled or charged'}")
                wrongs += found
            except NotHere as why:
                told(f"{scene.__name__}: not played: {why}")
    return wrongs
