"""Keeps the steps of a job: starts them, notices how each ended, stops them; and why a job ends."""

import json
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from types import FrameType

from bench.errors import ExitCode
from cluster.job.inference import EngineHealth, EngineState
from cluster.job.launchers import Launcher, Role, Running, Step, log_tail, read_begin, read_end, unrecorded, wait
from cluster.job.layout import RunLayout, write_json
from cluster.job.ranks import GONE, RankHealth
from cluster.job.step import EndRecord, StepState, end_record


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


# A node that has room starts a step within seconds; no episode would ever end that one.
BEGIN_WITHIN_S = 300.0


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


class Beginnings:
    """Steps that have been asked for and of which nothing has begun yet; `clock` counts seconds."""

    def __init__(self, steps: Sequence[Running], clock: Callable[[], float] = time.monotonic) -> None:
        self._waiting, self._clock, self._since = list(steps), clock, clock()

    def late(self, limit_s: float = BEGIN_WITHIN_S) -> str:
        """Which of them wait for longer than `limit_s` seconds, with what their launcher printed; empty: none."""
        self._waiting = [one for one in self._waiting if one.poll() is None and read_begin(one.step) is None]
        waited_s = self._clock() - self._since
        if not self._waiting or waited_s < limit_s:
            return ""
        first = self._waiting[0].step
        return f"{len(self._waiting)} steps have not begun after {waited_s:.0f} s; {first.name}:\n{log_tail(first.log)}"


class Steps:
    """Every step of the job: sees to it that each has a record of its end, and leaves nothing running."""

    def __init__(self, launcher: Launcher, layout: RunLayout) -> None:
        self._launcher = launcher
        self._layout = layout
        self._started: list[Running] = []
        self._recorded: set[str] = set()

    def start(self, step: Step) -> Running:
        running = self._launcher.start(step)
        self._started.append(running)
        return running

    def note_ends(self) -> None:
        """Write the record of each step that has ended since the last call and wrote none itself."""
        for running in self._started:
            end = running.poll()
            if end is not None and running.step.name not in self._recorded:
                self._note(end)

    def _note(self, end: EndRecord) -> None:
        self._recorded.add(end.name)
        if end.exit_code is None:
            write_json(end_record(self._layout.steps, end.name), asdict(end))

    def stop(self, *roles: Role, grace_s: float) -> None:
        """Ask the steps of these roles to end, give them `grace_s` seconds in all, then kill what is left."""
        self.note_ends()
        chosen = [running for running in self._started if running.step.role in roles and running.poll() is None]
        self._launcher.stop(chosen)
        deadline = time.monotonic() + grace_s
        self._kill([one for one in chosen if wait(one, max(0.0, deadline - time.monotonic())) is None])
        self.note_ends()

    def kill_all(self) -> None:
        """End everything that still runs, at once: the last resort of a job that fails itself."""
        self._kill([running for running in self._started if running.poll() is None])
        self.note_ends()

    def _kill(self, chosen: Sequence[Running]) -> None:
        if not chosen:
            return
        self._launcher.kill(chosen)
        for running in chosen:
            # Nobody else can say it: what writes the records was killed as well.
            self._note(read_end(running.step) or unrecorded(running.step, StepState.KILLED, stopped=True))


@dataclass(frozen=True)
class Awaited:
    """A service that must be ready before agents start: `rank 3`, `replica 0`. `is_mute`: only its logs can say why."""

    name: str
    state: str
    reason: str
    step: Step
    is_ready: bool
    is_gone: bool
    is_mute: bool


def never_ready(services: Sequence[Awaited], waited_s: float) -> Verdict:
    """Which services are not ready, why, and the end of their logs."""
    lines = [f"not every service was ready after {waited_s:.0f} s"]
    for service in services:
        if not service.is_ready:
            lines.append(f"{service.name} ({service.state}): {service.reason}")
        # An unfit judge has said why; of one that is silent or gone, only its logs speak.
        if service.is_mute:
            lines += [f"last lines of {log}:\n{log_tail(log)}" for log in service.step.logs if log.exists()]
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
        return Verdict(Cause.STALLED, f"no episode or grade event for {sight.quiet_s:.0f} s")
    return None


def _lost_services(sight: Sight, rules: Rules) -> str | None:
    """Which services are lost, where none is left to take over."""
    lost = [f"rank {health.rank}: {health.reason}" for health in sight.ranks if health.state in GONE]
    if lost and (len(lost) == len(sight.ranks) or not rules.failover):
        return f"{len(lost)} of {len(sight.ranks)} judge ranks are lost ({'; '.join(lost)})"
    dead = [f"replica {health.replica}: {health.reason}" for health in _lost_engines(sight)]
    if dead and len(dead) == len(sight.engines):
        return f"no engine serves the model any more ({'; '.join(dead)})"
    return None


def _lost_engines(sight: Sight) -> list[EngineHealth]:
    return [health for health in sight.engines if health.state is EngineState.LOST]


def out_of_time(left_s: float | None, reserve_s: float) -> Verdict | None:
    """The reason to stop once the allocation has no more left than the reserve; None before, or where it has no end."""
    if left_s is None or left_s > reserve_s:
        return None
    return Verdict(Cause.WALL_CLOCK, f"{left_s:.0f} s of the allocation are left, kept for stop and merge")


def _agents_ended(sight: Sight) -> Verdict:
    failed = {node: end for node, end in enumerate(sight.agents) if end and end.state is not StepState.SUCCEEDED}
    if len(failed) == len(sight.agents):
        ends = ", ".join(end.words for end in failed.values())
        return Verdict(Cause.SERVICE_LOST, f"every agent driver failed ({ends}); read their logs under agents/")
    reason = f"agent drivers of nodes {list(failed)} failed" if failed else "all agents ended"
    return Verdict(Cause.FINISHED, reason)


def exit_code(verdict: Verdict, sight: Sight | None, merged: bool) -> ExitCode:
    """Exit code of a job that left its watch with `verdict`, having last seen `sight`."""
    if not merged:
        return ExitCode.MERGE_FAILED
    return code_of(verdict.cause, sight is not None and degraded(sight))


def code_of(cause: Cause, is_degraded: bool) -> ExitCode:
    """Exit code of a job that was merged."""
    return ExitCode.DEGRADED if cause is Cause.FINISHED and is_degraded else EXIT_CODES[cause]


def degraded(sight: Sight) -> bool:
    """Whether a rank, an engine or an agent node was lost while another did the rest."""
    failed = any(end and end.state is not StepState.SUCCEEDED for end in sight.agents)
    return failed or any(health.state in GONE for health in sight.ranks) or bool(_lost_engines(sight))


def end_records(layout: RunLayout) -> list[dict[str, object]]:
    """The end records of a run, by step name; a step that has begun and has none is lost."""
    ends = {path.name.removesuffix(".end.json"): _read(path) for path in layout.steps.glob("*.end.json")}
    begun = {path.name.removesuffix(".begin.json"): _read(path) for path in layout.steps.glob("*.begin.json")}
    for name in begun.keys() - ends.keys():
        ends[name] = {key: begun[name].get(key) for key in ("name", "role", "host")} | {"state": StepState.LOST}
    return [ends[name] for name in sorted(ends)]


def _read(path: Path) -> dict[str, object]:
    return dict(json.loads(path.read_text(encoding="utf-8")))
