"""The Launcher seam: what the life of a job asks of whatever starts its steps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from cluster.job.allocation import Host


class Role(StrEnum):
    """What a step is for."""

    INFERENCE = "inference"
    AGENT = "agent"
    JUDGE = "judge"


class StepState(StrEnum):
    """Where a step is in its life; all but `running` are ends."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    KILLED = "killed"


def state_of(returncode: int | None) -> StepState:
    """State of a step by its exit code; None while it runs, negative when a signal ended it."""
    if returncode is None:
        return StepState.RUNNING
    if returncode == 0:
        return StepState.SUCCEEDED
    return StepState.KILLED if returncode < 0 else StepState.FAILED


@dataclass(frozen=True)
class Step:
    """One long-lived command of a role on one host.

    Its output goes to `log`; `child_logs` is what its own children write. `env` is added to the job's own; no
    CPUs means any.
    """

    name: str
    role: Role
    argv: tuple[str, ...]
    host: Host
    log: Path
    cpus: tuple[int, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    child_logs: tuple[Path, ...] = ()

    @property
    def logs(self) -> tuple[Path, ...]:
        return (self.log, *self.child_logs)


class Running(Protocol):
    """A step that was started."""

    @property
    def step(self) -> Step: ...

    def poll(self) -> int | None:
        """Exit code, or None while the step runs."""
        ...

    def terminate(self) -> None:
        """Send TERM to the step's own process; a step that has ended is left alone."""
        ...

    def wait(self, timeout_s: float) -> int | None:
        """Exit code as soon as the step ends, or None after `timeout_s` seconds."""
        ...

    def kill(self) -> None:
        """End the step and everything it started, at once."""
        ...


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

    def first_port(self, count: int) -> int:
        """First of `count` consecutive ports that judges may take where JUDGE_PORT is unset."""
        ...

    def start(self, step: Step) -> Running: ...


TAIL_BYTES = 4096


def log_tail(path: Path, lines: int = 20) -> str:
    """Last lines of a step's log, or a sentence that there are none."""
    try:
        with path.open("rb") as log:
            log.seek(max(0, path.stat().st_size - TAIL_BYTES))
            text = log.read().decode(errors="replace")
    except FileNotFoundError:
        text = ""
    return "\n".join(text.splitlines()[-lines:]) or "(it printed nothing)"
