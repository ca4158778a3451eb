"""Keeps the steps of a job: starts them, notices how each ended, stops them; and why a job ends."""

import json
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from types import FrameType

from bench.errors import ExitCode
from cluster.job.launchers import Launcher, Role, Running, Step, StepState, log_tail, state_of
from cluster.job.layout import RunLayout, write_json
from cluster.job.ranks import GONE, RankHealth, RankState


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


@dataclass(frozen=True)
class EndRecord:
    """How one step ended, as `<run>/ended/<step>.json` keeps it. `stopped` says that the job ended it."""

    name: str
    role: Role
    host: str
    state: StepState
    exit_code: int
    stopped: bool
    seconds: float
    ended_at: str


class Steps:
    """Every step of the job; writes an end record for each, once, and leaves nothing running."""

    def __init__(self, launcher: Launcher, layout: RunLayout) -> None:
        self._launcher = launcher
        self._layout = layout
        self._started: list[tuple[Running, float]] = []
        self._recorded: set[str] = set()

    def start(self, step: Step) -> Running:
        running = self._launcher.start(step)
        self._started.append((running, time.monotonic()))
        return running

    def note_ends(self, stopped: bool = False) -> None:
        """Write the record of each step that has ended since the last call."""
        for running, started in self._started:
            code, step = running.poll(), running.step
            if code is None or step.name in self._recorded:
                continue
            self._recorded.add(step.name)
            seconds = round(time.monotonic() - started, 3)
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            record = EndRecord(step.name, step.role, step.host.name, state_of(code), code, stopped, seconds, now)
            write_json(self._layout.end_record(step.name), asdict(record))

    def stop(self, role: Role, grace_s: float) -> None:
        """TERM the steps of a role together, give them `grace_s` seconds in all, then kill what is left."""
        self.note_ends()
        chosen = [running for running, _ in self._started if running.step.role is role]
        for running in chosen:
            running.terminate()
        deadline = time.monotonic() + grace_s
        for running in chosen:
            if running.wait(max(0.0, deadline - time.monotonic())) is None:
                running.kill()
        self.note_ends(stopped=True)

    def kill_all(self) -> None:
        """End everything that still runs, at once: the last resort of a job that fails itself."""
        for running, _ in self._started:
            running.kill()
        self.note_ends(stopped=True)


def never_ready(steps: Sequence[Running], healths: Sequence[RankHealth], waited_s: float) -> Verdict:
    """Which ranks are not ready, why, and the end of their logs."""
    lines = [f"not every judge was ready after {waited_s:.0f} s"]
    for health in healths:
        if health.state is not RankState.READY:
            lines.append(f"rank {health.rank} ({health.state}): {health.reason}")
        # An unfit judge has said why; of one that is silent or gone, only its logs speak.
        if health.state in (RankState.STARTING, RankState.LOST):
            logs = steps[health.rank].step.logs
            lines += [f"last lines of {log}:\n{log_tail(log)}" for log in logs if log.exists()]
    return Verdict(Cause.NEVER_READY, "\n".join(lines))


@dataclass(frozen=True)
class Sight:
    """What the watch sees at one moment. `agents` are exit codes, None while one runs; times in seconds."""

    ranks: tuple[RankHealth, ...]
    agents: tuple[int | None, ...]
    quiet_s: float
    left_s: float | None


@dataclass(frozen=True)
class Rules:
    """When a watch ends. `reserve_s` is what stopping, draining and merging need; `stall_s` 0: never."""

    reserve_s: float
    stall_s: float
    failover: bool


def decide(sight: Sight, rules: Rules) -> Verdict | None:
    """The reason to leave the watch now, or None to go on."""
    lost = [health for health in sight.ranks if health.state in GONE]
    if lost and (len(lost) == len(sight.ranks) or not rules.failover):
        why = "; ".join(f"rank {health.rank}: {health.reason}" for health in lost)
        return Verdict(Cause.SERVICE_LOST, f"{len(lost)} of {len(sight.ranks)} judge ranks are lost ({why})")
    if all(code is not None for code in sight.agents):
        return _agents_ended(sight)
    if verdict := out_of_time(sight.left_s, rules.reserve_s):
        return verdict
    if rules.stall_s and sight.quiet_s >= rules.stall_s:
        return Verdict(Cause.STALLED, f"no episode or grade event for {sight.quiet_s:.0f} s")
    return None


def out_of_time(left_s: float | None, reserve_s: float) -> Verdict | None:
    """The reason to stop once the allocation has no more left than the reserve; None before, or where it has no end."""
    if left_s is None or left_s > reserve_s:
        return None
    return Verdict(Cause.WALL_CLOCK, f"{left_s:.0f} s of the allocation are left, kept for stop and merge")


def _agents_ended(sight: Sight) -> Verdict:
    failed = [node for node, code in enumerate(sight.agents) if code]
    if len(failed) == len(sight.agents):
        codes = ", ".join(str(code) for code in sight.agents)
        return Verdict(Cause.SERVICE_LOST, f"every agent driver failed (exit {codes}); read their logs under agents/")
    return Verdict(Cause.FINISHED, f"agent drivers of nodes {failed} failed" if failed else "all agents ended")


def exit_code(verdict: Verdict, sight: Sight | None, merged: bool) -> ExitCode:
    """Exit code of a job that left its watch with `verdict`, having last seen `sight`."""
    if not merged:
        return ExitCode.MERGE_FAILED
    if verdict.cause is Cause.FINISHED and sight and degraded(sight):
        return ExitCode.DEGRADED
    return EXIT_CODES[verdict.cause]


def degraded(sight: Sight) -> bool:
    """Whether a rank or an agent node was lost while another did the rest."""
    return any(health.state in GONE for health in sight.ranks) or any(sight.agents)


def end_records(layout: RunLayout) -> list[dict[str, object]]:
    """The end records of a run, by step name."""
    return [
        json.loads(path.read_text(encoding="utf-8")) for path in sorted(layout.end_record("x").parent.glob("*.json"))
    ]
