"""The Launcher seam: what the life of a job asks of whatever starts its steps."""

import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from cluster.job.allocation import Host
from cluster.job.records import BeginRecord, EndRecord, StepState, read_begin, read_end

LOOK_EVERY_S = 0.05


class Role(StrEnum):
    """What a step is for."""

    INFERENCE = "inference"
    AGENT = "agent"
    JUDGE = "judge"
    MONITOR = "monitor"


@dataclass(frozen=True)
class Step:
    """One long-lived command of a role on one host.

    How it began and ended is written to the folder `records`, its output goes to `log`, and `child_logs` is what its
    own children write. `env` is added to what a job may have of the environment, and `keys` names the variables of
    secrets that only this step gets; no CPUs means any; `gpus` are indices on the host, and `vendor` is whose they
    are, as a device (cuda, hip), where that is known.
    """

    name: str
    role: Role
    argv: tuple[str, ...]
    host: Host
    log: Path
    records: Path
    cpus: tuple[int, ...] = ()
    gpus: tuple[int, ...] = ()
    vendor: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    child_logs: tuple[Path, ...] = ()

    @property
    def logs(self) -> tuple[Path, ...]:
        return (self.log, *self.child_logs)

    def read_begin(self) -> BeginRecord | None:
        """How it began; None before it has."""
        return read_begin(self.records, self.name)

    def read_end(self) -> EndRecord | None:
        """How it ended; None while that is not written."""
        return read_end(self.records, self.name)

    @property
    def wrapped(self) -> list[str]:
        """The command line that runs on the host: pinned, and behind what writes the step's records."""
        pinned = ["taskset", "-c", ",".join(map(str, self.cpus))] if self.cpus else []
        gpus = ["--gpus", ",".join(map(str, self.gpus))] if self.gpus else []
        gpus += ["--vendor", self.vendor] if self.gpus and self.vendor else []
        wrapper = [sys.executable, "-P", "-m", "cluster.job.step", *gpus, str(self.records), self.name, self.role]
        return [*pinned, *wrapper, *self.argv]


class Running:
    """A step seen through its launcher's process and its records.

    The process alone is not believed: a scheduler reports a step lost with its node as a success. `without_record`
    gives the state of a step whose process has ended without a record; where that is `lost`, the record is waited for,
    for `patience_s` seconds.
    """

    def __init__(
        self,
        step: Step,
        child: "subprocess.Popen[bytes]",
        patience_s: float = 0.0,
        without_record: Callable[[Step], StepState] = lambda step: StepState.LOST,
    ) -> None:
        self.step, self.child = step, child
        self._patience_s, self._without_record = patience_s, without_record
        self._ended_at: float | None = None
        self._end: EndRecord | None = None

    def poll(self) -> EndRecord | None:
        if self._end is None and self.child.poll() is not None:
            self._end = self.step.read_end() or self._given_up()
        return self._end

    def _given_up(self) -> EndRecord | None:
        now, state = time.monotonic(), self._without_record(self.step)
        self._ended_at = self._ended_at or now
        if state is StepState.LOST and now - self._ended_at < self._patience_s:
            return None
        return unrecorded(self.step, state)

    @property
    def awaits_record(self) -> bool:
        """Whether it has ended, and nothing has said how yet."""
        return self.poll() is None and self.child.poll() is not None


class Launcher(Protocol):
    """Starts steps on the hosts of one allocation."""

    @property
    def hosts(self) -> Sequence[Host]:
        """The allocation's nodes, in the order that roles are dealt."""
        ...

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the allocation ends; None: it does not."""
        ...

    @property
    def kill_in_s(self) -> float | None:
        """Seconds from now in which the scheduler kills everything, once it has begun to; None: it has not."""
        ...

    def first_port(self, count: int) -> int:
        """First of `count` consecutive ports that judges may take where JUDGE_PORT is unset."""
        ...

    def start(self, step: Step) -> Running: ...

    def stop(self, steps: Sequence[Running]) -> None:
        """Ask each step's own process to end in order; those that have ended are left alone."""
        ...

    def kill(self, steps: Sequence[Running]) -> None:
        """End the steps and everything they started, at once."""
        ...


def unrecorded(step: Step, state: StepState, stopped: bool = False) -> EndRecord:
    """The end of a step that wrote none."""
    return EndRecord(step.name, step.role, step.host.name, state, stopped=stopped)


def wait(running: Running, timeout_s: float) -> EndRecord | None:
    """How a step ended as soon as it has, or None after `timeout_s` seconds."""
    deadline = time.monotonic() + timeout_s
    while (end := running.poll()) is None and time.monotonic() < deadline:
        time.sleep(LOOK_EVERY_S)
    return end
