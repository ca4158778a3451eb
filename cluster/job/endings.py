"""Why a job ends: what is seen of its services, agents and signals → a cause, a sentence, an exit code."""

import signal
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import FrameType

from bench.errors import ExitCode
from cluster.job.health import EngineHealth, RankHealth
from cluster.job.launchers import Step
from cluster.job.lines import log_tail
from cluster.job.records import EndRecord, StepState


class Cause(StrEnum):
    """Why a job leaves its watch; `finished` is the good one."""

    FINISHED = "finished"
    NEVER_READY = "never_ready"
    SERVICE_LOST = "service_lost"
    STALLED = "stalled"
    CANCELLED = "cancelled"
    WALL_CLOCK = "wall_clock"


EXIT_CODES = {
    Cause.FINISHED: ExitCode.OK,
    Cause.NEVER_READY: ExitCode.NEVER_READY,
    Cause.SERVICE_LOST: ExitCode.SERVICE_LOST,
    Cause.STALLED: ExitCode.STALLED,
    Cause.CANCELLED: ExitCode.CANCELLED,
    Cause.WALL_CLOCK: ExitCode.WALL_CLOCK,
}

# Slurm sends USR1 ahead of the wall clock; TERM and INT come from a person.
_SIGNALS = {
    signal.SIGTERM: Cause.CANCELLED,
    signal.SIGINT: Cause.CANCELLED,
    signal.SIGUSR1: Cause.WALL_CLOCK,
}


@dataclass(frozen=True)
class Verdict:
    """A cause and the sentence that explains it to the operator."""

    cause: Cause
    reason: str


class Interrupts:
    """Turns the signals of the job's process into a cause, inside a `with`; the first one counts."""

    def __init__(self) -> None:
        self.verdict: Verdict | None = None
        self._arrived = threading.Event()
        self._before: dict[signal.Signals, object] = {}

    def __enter__(self) -> "Interrupts":
        self._before = {number: signal.signal(number, self._note) for number in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def pause(self, seconds: float) -> None:
        """Sleep, or return at once when a signal has arrived."""
        self._arrived.wait(seconds)

    def _note(self, number: int, _: FrameType | None) -> None:
        if self.verdict is None:
            name = signal.Signals(number).name
            self.verdict = Verdict(_SIGNALS[signal.Signals(number)], f"the job received {name}")
        self._arrived.set()


Awaited = tuple[RankHealth | EngineHealth, Step]  # what a judge or an engine said of itself, and the step it runs in


def never_ready(services: Sequence[Awaited], waited_s: float) -> Verdict:
    """Which services are not ready, why, and the end of their logs."""
    lines = [f"not every service was ready after {waited_s:.0f} s"]
    for health, step in services:
        if not health.is_ready:
            lines.append(f"{health.name} ({health.state}): {health.reason}")
        if health.is_mute:
            lines += [f"last lines of {log}:\n{log_tail(log)}" for log in step.logs if log.exists()]
    return Verdict(Cause.NEVER_READY, "\n".join(lines))


@dataclass(frozen=True)
class Sight:
    """What the watch sees at one moment. `agents` are the ends of the drivers, None while one runs; times in seconds.

    `unbegun` says which steps wait to begin for too long, and why.
    """

    ranks: tuple[RankHealth, ...]
    agents: tuple[EndRecord | None, ...]
    quiet_s: float
    left_s: float | None
    engines: tuple[EngineHealth, ...] = ()
    unbegun: str = ""


@dataclass(frozen=True)
class Rules:
    """When a watch ends. `reserve_s` is what stopping, draining and merging need; `stall_s` 0: never."""

    reserve_s: float
    stall_s: float
    failover: bool


def decide(sight: Sight, rules: Rules) -> Verdict | None:
    """The reason to leave the watch now, or None to go on."""
    if lost := _lost_services(sight, rules):
        return Verdict(Cause.SERVICE_LOST, lost)
    if all(end is not None for end in sight.agents):
        return _agents_ended(sight)
    if sight.unbegun:
        return Verdict(Cause.SERVICE_LOST, sight.unbegun)
    if verdict := out_of_time(sight.left_s, rules.reserve_s):
        return verdict
    if rules.stall_s and sight.quiet_s >= rules.stall_s:
        return Verdict(Cause.STALLED, f"for {sight.quiet_s:.0f} s no episode began or ended, and nothing was graded")
    return None


def _lost_services(sight: Sight, rules: Rules) -> str | None:
    """Which services are lost, where none is left to take over."""
    lost = [f"{health.name}: {health.reason}" for health in sight.ranks if health.is_gone]
    if lost and (len(lost) == len(sight.ranks) or not rules.failover):
        return f"{len(lost)} of {len(sight.ranks)} judge ranks are lost ({'; '.join(lost)})"
    dead = [f"{health.name}: {health.reason}" for health in sight.engines if health.is_gone]
    if dead and len(dead) == len(sight.engines):
        return f"no engine serves the model any more ({'; '.join(dead)})"
    return None


def out_of_time(left_s: float | None, reserve_s: float) -> Verdict | None:
    """The reason to stop once the allocation has no more left than the reserve; None before, or where it has no end."""
    if left_s is None or left_s > reserve_s:
        return None
    return Verdict(Cause.WALL_CLOCK, f"the allocation ends in {left_s:.0f} s, which stopping and merging need")


def _agents_ended(sight: Sight) -> Verdict:
    failed = {node: end for node, end in enumerate(sight.agents) if end and end.state is not StepState.SUCCEEDED}
    if len(failed) == len(sight.agents):
        ends = ", ".join(end.words for end in failed.values())
        return Verdict(Cause.SERVICE_LOST, f"every agent driver failed ({ends}); read their logs under agents/")
    if failed:
        ends = ", ".join(f"agent-{node} {end.words}" for node, end in failed.items())
        return Verdict(Cause.FINISHED, f"agent drivers failed: {ends}")
    return Verdict(Cause.FINISHED, "all agents ended")


def exit_code(cause: Cause, is_degraded: bool, merged: bool = True) -> ExitCode:
    """Exit code of a job by why it ended, whether it was `degraded`, and whether its merge worked."""
    if not merged:
        return ExitCode.MERGE_FAILED
    return ExitCode.DEGRADED if cause is Cause.FINISHED and is_degraded else EXIT_CODES[cause]


def degraded(sight: Sight | None) -> bool:
    """Whether a rank, an engine or an agent node was lost while another did the rest; None: nothing was seen."""
    if sight is None:
        return False
    failed = any(end and end.state is not StepState.SUCCEEDED for end in sight.agents)
    return failed or any(rank.is_gone for rank in sight.ranks) or any(engine.is_gone for engine in sight.engines)
