"""`state.json`: what the job's process says of itself while it lives, for whoever watches it."""

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from socket import gethostname
from typing import Any

import psutil
from pydantic import BaseModel, ConfigDict

from agent.journal import utc_now
from bench.errors import EnvironmentFault
from cluster.job.documents import read_json, write_json
from cluster.job.health import EngineHealth, RankHealth
from cluster.job.layout import RunLayout

WRITE_EVERY_S = 1.0
KEPT_SENTENCES = 20


class Phase(StrEnum):
    """Where a job is in its life."""

    STARTING = "starting"
    WORKING = "working"
    DRAINING = "draining"
    STOPPING = "stopping"
    MERGING = "merging"
    DONE = "done"


@dataclass(frozen=True)
class Said:
    """A sentence that the operator was told, and when (UTC)."""

    at: str
    text: str


class JobState(BaseModel):
    """The content of `state.json`. Times are UTC in ISO 8601; `left_s` of the allocation, None: it has no end.

    `quiet_s`: seconds without an episode or grade event; `host` and `pid` are those of the job's process.
    """

    model_config = ConfigDict(frozen=True)

    phase: Phase
    at: str
    phase_since: str
    host: str
    pid: int
    left_s: float | None
    quiet_s: float
    ranks: tuple[RankHealth, ...]
    engines: tuple[EngineHealth, ...]
    said: tuple[Said, ...]

    def age_s(self, now: datetime) -> float:
        """Seconds since the job's process wrote it."""
        return (now - datetime.fromisoformat(self.at)).total_seconds()

    def phase_age_s(self, now: datetime) -> float:
        """Seconds since its phase began."""
        return (now - datetime.fromisoformat(self.phase_since)).total_seconds()

    @property
    def process_lives(self) -> bool | None:
        """Whether the job's process runs; None where another machine would have to say."""
        if self.host != gethostname():
            return None
        with suppress(psutil.NoSuchProcess):
            # Process ids are used again: a process that is younger than the state is another one.
            return psutil.Process(self.pid).create_time() <= datetime.fromisoformat(self.at).timestamp() + 1
        return False


class StateFile:
    """Keeps a job's `state.json` current; `clock` counts seconds."""

    def __init__(self, layout: RunLayout, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = layout.state
        self._clock = clock
        self._phase: Phase | None = None
        self._phase_since = utc_now()
        self._ranks: tuple[RankHealth, ...] = ()
        self._engines: tuple[EngineHealth, ...] = ()
        self._said: list[Said] = []
        self._due = clock()

    def note(
        self,
        phase: Phase,
        *,
        ranks: Sequence[RankHealth] = (),
        engines: Sequence[EngineHealth] = (),
        left_s: float | None = None,
        quiet_s: float = 0,
        said: str = "",
    ) -> None:
        """Say where the job is; written at most once a second, and at once when the phase or what was said is new.

        Ranks and engines that are left out stay as they were last seen.
        """
        self._ranks, self._engines = tuple(ranks) or self._ranks, tuple(engines) or self._engines
        if not (self._is_news(phase, said) or self._clock() >= self._due):
            return
        self._due = self._clock() + WRITE_EVERY_S
        # A job does not die of a full disk because nobody could watch it: its state is then seen to be old.
        with suppress(EnvironmentFault):
            write_json(self._path, self._document(left_s, quiet_s))

    def _is_news(self, phase: Phase, said: str) -> bool:
        """Whether phase or sentence differs from the last one; keeps both."""
        new_phase = phase is not self._phase
        new_said = bool(said) and (not self._said or self._said[-1].text != said)
        if new_phase:
            self._phase, self._phase_since = phase, utc_now()
        if new_said:
            self._said = [*self._said, Said(utc_now(), said)][-KEPT_SENTENCES:]
        return new_phase or new_said

    def _document(self, left_s: float | None, quiet_s: float) -> dict[str, Any]:
        return {
            "phase": self._phase,
            "at": utc_now(),
            "phase_since": self._phase_since,
            "host": gethostname(),
            "pid": os.getpid(),
            "left_s": None if left_s is None else round(left_s, 3),
            "quiet_s": round(quiet_s, 3),
            "ranks": [asdict(rank) for rank in self._ranks],
            "engines": [asdict(engine) for engine in self._engines],
            "said": [asdict(said) for said in self._said],
        }


def read_state(layout: RunLayout) -> JobState | None:
    """What the job's process last said of itself; None where it never did.

    Raises:
        ConfigError: the file is damaged or cannot be read.
    """
    return read_json(JobState, layout.state, "move it away, a job that lives writes it again")
