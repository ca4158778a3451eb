"""Keeps the judge behind a router running: restarts it with growing pauses, at last gives the rank up."""

import asyncio
import contextlib
import signal
import subprocess
import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import structlog

from bench import process
from bench.judge.children import exited

log = structlog.get_logger()

# A judge exits with 0 when a signal stopped it, and the same signal may reach the router in a moment.
TOLD_PAUSE_S = 2.0


@dataclass(frozen=True)
class RestartPolicy:
    """How often and how soon a dead judge is started again; times in seconds."""

    limit: int = 5
    window_s: float = 600.0
    pause_first_s: float = 0.1
    pause_max_s: float = 30.0

    def pause(self, restarts: Iterable[float], now: float) -> float | None:
        """Pause before the next restart, or None when the restarts within the window are spent."""
        recent = sum(1 for at in restarts if now - at < self.window_s)
        if recent >= self.limit:
            return None
        return float(min(self.pause_first_s * 3**recent, self.pause_max_s))


class JudgeState(StrEnum):
    """What the router knows of the judge behind it."""

    RUNNING = "running"
    RESTARTING = "restarting"
    LOST = "lost"
    STOPPED = "stopped"


class Supervisor:
    """Owns the judge process: `run` until `stop`; `output` collects what the judge prints."""

    def __init__(self, argv: Sequence[str], output: Path, policy: RestartPolicy = RestartPolicy()) -> None:
        self.state = JudgeState.RESTARTING
        self.restarts: deque[float] = deque(maxlen=policy.limit)
        self._argv, self._output, self._policy = argv, output, policy
        self._child: subprocess.Popen[bytes] | None = None
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Start the judge, and again whenever it ends, until `stop` is called or the restarts are spent."""
        while not self._stopping.is_set():
            code = await self._serve_once()
            if self._stopping.is_set():
                break
            pause_s = self._policy.pause(self.restarts, time.monotonic())
            if pause_s is None:
                self.state = JudgeState.LOST
                log.error("rank_lost", code=code, see=str(self._output))
                return
            if code == 0:
                pause_s = max(pause_s, TOLD_PAUSE_S)
            self.restarts.append(time.monotonic())
            log.warning("judge_ended", code=code, restart_in_s=pause_s, see=str(self._output))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause_s)
        self.state = JudgeState.STOPPED

    async def _serve_once(self) -> int:
        with self._output.open("ab") as sink:
            child = process.spawn(self._argv, output=sink, holds_stops=True)
        self._child = child
        self.state = JudgeState.RUNNING
        log.info("judge_started", pid=child.pid)
        try:
            return await exited(child)
        finally:
            self.state = JudgeState.RESTARTING
            process.kill_tree(child)
            process.sweep()  # a killed judge could not end what it had started, and it was our only child

    async def stop(self, grace_s: float) -> None:
        """Ask the judge to finish what it grades and leave; kill it when it has not left after `grace_s`."""
        self._stopping.set()
        child = self._child
        if child is None or child.poll() is not None:
            return
        child.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(exited(child), grace_s)
        except TimeoutError:
            log.warning("judge_killed", after_s=grace_s)
            process.kill_tree(child)
