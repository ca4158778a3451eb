"""One launch of a client: start it, watch its stream and its limits, end it, leave nothing of it running."""

import contextlib
import os
import select
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from agent.answers import accepted_submit, read_calls
from agent.budget import Budget, Observed, Stop
from agent.cancel import Cancel
from agent.harnesses import Command, Harness, Launch
from agent.journal import write_private
from agent.seal import TOOLS, Seal
from agent.tools.settings import VARIABLE
from agent.usage import NOTHING, Usage
from bench import process
from bench.errors import EnvironmentFault
from bench.judge.schemas import End, SubmissionMode

HEARTBEAT_S = 0.25
TERM_GRACE_S = 5.0
CHUNK_BYTES = 64 << 10
LINE_CAP_BYTES = 8 << 20
LOG_CAP_BYTES = 256 << 20
# What a client inherits of the driver's environment; a key or a job's settings never do.
INHERITED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH")


@dataclass(frozen=True)
class Rules:
    """What one attempt must keep to.

    `deadline` is on the monotonic clock, `used` is what earlier attempts used, `model` the only one that may answer
    (None: any).
    """

    deadline: float
    budget: Budget
    used: Usage
    mode: SubmissionMode
    tools: frozenset[str]
    ready_timeout_s: float
    idle_timeout_s: float
    exit_grace_s: float
    answers_file: Path
    tokens_file: Path
    log_file: Path
    model: str | None = None
    seal: Seal | None = None


@dataclass(frozen=True)
class Attempt:
    """How a launch went and what it used; the episode adds `seen.submitted` afterwards."""

    seen: Observed
    usage: Usage
    model: str | None = None
    session: str | None = None


def run_attempt(harness: Harness, launch: Launch, rules: Rules, cancel: Cancel) -> Attempt:
    """Run a client to its end. The calling process must own no other children: what is left is killed."""
    read_end, write_end = os.pipe()
    try:
        child = _start(harness.command(launch), launch, rules.seal, write_end)
    except EnvironmentFault as fault:
        rules.log_file.write_text(f"{fault}\n", encoding="utf-8")
        return Attempt(Observed(exit_code=None, ready=False), NOTHING)
    finally:
        os.close(write_end)
    with os.fdopen(read_end, "rb", buffering=0), rules.log_file.open("wb", buffering=0) as log:
        watch = Watch(harness, rules, cancel, Stream(read_end, log))
        stop = watch.until_stop(child)
        if stop is not None:
            process.terminate(child, TERM_GRACE_S)
        _clear(child)
        watch.drain()
        return watch.result(child.returncode, stop)


def client_env(launch: Launch, sealed: bool) -> dict[str, str]:
    """The environment of a client and of its tools; a harness may add to the client's."""
    own = {
        "HOME": launch.home,
        "TMPDIR": launch.home / "tmp",
        "XDG_CACHE_HOME": launch.home / ".cache",
        "XDG_CONFIG_HOME": launch.home / ".config",
        VARIABLE: launch.tools_file,
    }
    env = {name: os.environ[name] for name in INHERITED if name in os.environ}
    env |= {name: str(path) for name, path in own.items()}
    if sealed:
        env |= {"PYTHONPATH": str(TOOLS), "PATH": f"{TOOLS / 'bin'}{os.pathsep}{env.get('PATH', os.defpath)}"}
    return env


def _start(command: Command, launch: Launch, seal: Seal | None, output: int) -> "subprocess.Popen[bytes]":
    if launch.resume is None:
        (launch.home / "tmp").mkdir(parents=True)
    env = client_env(launch, seal is not None) | command.env
    # A driver that is killed takes its clients along.
    argv = ["setpriv", "--pdeathsig", "KILL", "--", *command.argv]
    if seal is not None:
        argv = [*seal.before(command, env.get("PATH", os.defpath), launch.folder), *argv]
    with contextlib.ExitStack() as opened:
        stdin = opened.enter_context(command.stdin.open("rb")) if command.stdin else subprocess.DEVNULL
        return process.spawn(argv, cwd=launch.folder, env=env, output=output, stdin=stdin)


def _clear(child: "subprocess.Popen[bytes]") -> None:
    """Kill what a client left: its session, then whatever left that session and fell to this process."""
    process.kill_tree(child)
    process.sweep()


class Stream:
    """A client's output, line by line, and the log that keeps it up to a cap."""

    def __init__(self, descriptor: int, log: BinaryIO) -> None:
        os.set_blocking(descriptor, False)
        self.open = True
        self.last_byte = time.monotonic()
        self._descriptor, self._log, self._log_room = descriptor, log, LOG_CAP_BYTES
        self._partial = b""

    def readable(self, timeout_s: float) -> bool:
        return bool(select.select([self._descriptor], [], [], timeout_s)[0])

    def lines(self) -> list[bytes]:
        """The lines that one read completes; at the stream's end also one that never ended."""
        try:
            chunk = os.read(self._descriptor, CHUNK_BYTES)
        except BlockingIOError:
            return []
        if not chunk:
            self.open = False
            return [self._partial] if self._partial else []
        self.last_byte = time.monotonic()
        *whole, self._partial = (self._partial + chunk).split(b"\n")
        if len(self._partial) > LINE_CAP_BYTES:
            self.keep(self._partial)
            self._partial = b""
        return whole

    def keep(self, line: bytes) -> None:
        """Write a line to the log, while there is room."""
        self._log.write((line + b"\n")[: self._log_room])
        self._log_room = max(0, self._log_room - len(line) - 1)


class Watch:
    """Follows one client: turns its stream into counts, and its limits into a reason to stop."""

    def __init__(self, harness: Harness, rules: Rules, cancel: Cancel, stream: Stream) -> None:
        self._harness, self._rules, self._cancel, self._stream = harness, rules, cancel, stream
        self._started = time.monotonic()
        self._answers_bytes = 0
        self._finished: float | None = None
        self._tools: frozenset[str] | None = None
        self._reported: End | None = None
        self._usage = NOTHING
        self._model: str | None = None
        self._session: str | None = None

    def until_stop(self, child: "subprocess.Popen[bytes]") -> Stop | None:
        """Wait until the client exits by itself (None) or has to be stopped."""
        while child.poll() is None:
            if stop := self._reason(time.monotonic()):
                return stop
            self._wait(child)
        return None

    def drain(self) -> None:
        """Take what is still in the stream of a client that is gone."""
        while self._stream.open and self._stream.readable(0):
            self._take(self._stream.lines())

    def result(self, exit_code: int, stop: Stop | None) -> Attempt:
        ready = self._tools == self._rules.tools
        # A client may say with whom it worked, and that it is done, in one breath.
        if stop in (None, Stop.LINGERED) and self._works_with_another():
            stop = Stop.OTHER_MODEL
        if objection := self._objection(exit_code, stop):
            self._stream.keep(f"[driver] the client {objection}".encode())
        seen = Observed(exit_code=exit_code, stop=stop, ready=ready, reported=self._reported)
        return Attempt(seen, self._usage, self._model, self._session)

    def _objection(self, exit_code: int | None, stop: Stop | None) -> str:
        """What the client did wrong, for its log; empty where nothing is."""
        if stop is Stop.OTHER_MODEL:
            return f"works with the model {self._model}; it was given {self._rules.model}"
        if stop in (None, Stop.NO_TOOLS) and self._tools != self._rules.tools:
            return f"announced the tools {_names(self._tools)}; expected {_names(self._rules.tools)}"
        return f"exited with code {exit_code} and without a result" if stop is None and self._reported is None else ""

    def _wait(self, child: "subprocess.Popen[bytes]") -> None:
        """Until the client writes or exits, a heartbeat at most."""
        if not self._stream.open:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(HEARTBEAT_S)
        elif self._stream.readable(HEARTBEAT_S):
            self._take(self._stream.lines())

    def _take(self, lines: list[bytes]) -> None:
        for line in lines:
            event = self._harness.read(line)
            if not event.partial:
                self._stream.keep(line)
            self._tools = event.tools if self._tools is None else self._tools
            self._model = event.model or self._model
            self._session = event.session or self._session
            self._count(event.usage)
            if event.end and self._reported is None:
                self._reported = event.end
                self._finished = self._finished or time.monotonic()

    def _count(self, usage: Usage) -> None:
        if usage != NOTHING:
            self._usage += usage
            write_private(self._rules.tokens_file, str((self._rules.used + self._usage).tokens))

    def _reason(self, now: float) -> Stop | None:
        rules = self._rules
        self._look_at_answers(now)
        if self._finished is not None:
            return Stop.LINGERED if now - self._finished >= rules.exit_grace_s else None
        reasons = {
            Stop.CANCELLED: self._cancel.requested,
            Stop.TIME: now >= rules.deadline,
            Stop.TOKENS: rules.budget.tokens_spent(rules.used + self._usage),
            Stop.OTHER_MODEL: self._works_with_another(),
            Stop.NO_TOOLS: self._lacks_tools(now),
            Stop.STALLED: now - self._stream.last_byte >= rules.idle_timeout_s,
        }
        return next((stop for stop, holds in reasons.items() if holds), None)

    def _works_with_another(self) -> bool:
        return self._rules.model is not None and self._model not in (None, self._rules.model)

    def _lacks_tools(self, now: float) -> bool:
        if self._tools is None:
            return now - self._started >= self._rules.ready_timeout_s
        return self._tools != self._rules.tools

    def _look_at_answers(self, now: float) -> None:
        """Notice the submit that ends an episode, from the judge's answers alone."""
        if self._rules.mode is SubmissionMode.MULTI or self._finished is not None:
            return
        with contextlib.suppress(FileNotFoundError):
            size = self._rules.answers_file.stat().st_size
            if size != self._answers_bytes and accepted_submit(read_calls(self._rules.answers_file)):
                self._finished = now
            self._answers_bytes = size


def _names(tools: frozenset[str] | None) -> str:
    return ", ".join(sorted(tools or ())) or "none"
