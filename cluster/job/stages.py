"""Where a job and each of its steps are: pure functions of what they have written."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from cluster.job.health import EngineHealth, RankHealth
from cluster.job.launchers import Role
from cluster.job.layout import RunLayout
from cluster.job.records import StepSeen
from cluster.job.state import JobState, Phase

# The job's process writes its state every second or so; on its way down it waits and merges, and may say nothing.
STALE_S = 60.0
_ON_THE_WAY_DOWN = frozenset({Phase.DRAINING, Phase.STOPPING, Phase.MERGING})


class Life(StrEnum):
    """Whether a job goes on; `gone`: its process has ended without a summary."""

    UNKNOWN = "no state recorded"
    RUNNING = "running"
    NOT_PROGRESSING = "not progressing"
    GONE = "gone"
    ENDED = "ended"


OVER = frozenset({Life.ENDED, Life.GONE})
GOES_ON = frozenset({Life.RUNNING, Life.NOT_PROGRESSING})


class Stage(StrEnum):
    """Where one step of a job is."""

    PENDING = "pending"
    STARTING = "starting"
    READY = "ready"
    SERVING = "serving"
    DRAINING = "draining"
    DONE = "done"
    LOST = "lost"
    NOT_PROGRESSING = "not progressing"


@dataclass(frozen=True)
class Limits:
    """What a job may take: seconds without an event (0: any), and seconds for its end."""

    stall_s: float = 0
    reserve_s: float = 0


@dataclass(frozen=True)
class Planned:
    """How many steps of each role a job has."""

    engines: int
    agents: int
    judges: int


@dataclass(frozen=True)
class Service:
    """What is known of the service in a step beside its records; requests are counted by judges alone."""

    ready: bool
    lost: bool = False
    note: str = ""
    queue_depth: int | None = None
    inflight_submits: int | None = None


@dataclass(frozen=True)
class StepRow:
    """One step as it is shown; `host` is None before it has begun."""

    step: str
    role: str
    number: int | None
    host: str | None
    stage: Stage
    queue_depth: int | None
    inflight_submits: int | None
    note: str


def life_of(
    state: JobState | None, lives: bool | None, summed_up: bool, now: datetime, limits: Limits = Limits()
) -> Life:
    """Whether a job goes on, by what its process last said and when.

    `lives` says whether that process runs (None: not known here), `summed_up` whether there is a summary. Look for the
    process first: one that ends in between has left a summary.
    """
    if summed_up or (state and state.phase is Phase.DONE):
        return Life.ENDED
    if state is None:
        return Life.UNKNOWN
    if lives is False:
        return Life.GONE
    if state.age_s(now) > (max(STALE_S, limits.reserve_s) if state.phase in _ON_THE_WAY_DOWN else STALE_S):
        return Life.NOT_PROGRESSING if lives else Life.GONE
    quiet = limits.stall_s > 0 and state.quiet_s > limits.stall_s / 2
    return Life.NOT_PROGRESSING if quiet and state.phase is Phase.WORKING else Life.RUNNING


def stage_of(life: Life, phase: Phase | None, step: StepSeen | None, service: Service) -> Stage:
    """Where a step is, by its records (None: it has not begun) and its service."""
    if service.lost or (step and step.failed):
        return Stage.LOST
    if step and step.ended_well:
        return Stage.DONE
    if life is Life.ENDED:
        # A step that has begun and left no end is lost.
        return Stage.LOST if step else Stage.PENDING
    if life in (Life.GONE, Life.NOT_PROGRESSING):
        return Stage.NOT_PROGRESSING
    if phase in _ON_THE_WAY_DOWN:
        return Stage.DRAINING
    if not service.ready:
        return Stage.STARTING if step else Stage.PENDING
    return Stage.READY if phase is Phase.STARTING else Stage.SERVING


def rows_of(
    layout: RunLayout, planned: Planned, life: Life, state: JobState | None, steps: Mapping[str, StepSeen]
) -> Iterator[StepRow]:
    """One row for each step that is planned or has left a record: engines, agents, judges, then the others."""
    phase, ours = state.phase if state else None, services_of(layout, planned, state)
    others = {name: Service(ready=True) for name in sorted(steps.keys() - ours.keys())}
    for name, service in (ours | others).items():
        step, (role, _, number) = steps.get(name), name.rpartition("-")
        # Where no step left a record, none was kept: what has worked there is done with the job.
        stage = Stage.DONE if life is Life.ENDED and not steps else stage_of(life, phase, step, service)
        yield StepRow(
            step=name,
            role=step.role if step else role,
            number=int(number) if name in ours else None,
            host=step.host if step else None,
            stage=stage,
            queue_depth=service.queue_depth,
            inflight_submits=service.inflight_submits,
            note=service.note or (step.words if step and step.failed else ""),
        )


def services_of(layout: RunLayout, planned: Planned, state: JobState | None) -> dict[str, Service]:
    """Step name → its service, for every step that is planned."""
    ranks = {rank.rank: rank for rank in state.ranks} if state else {}
    replicas = {engine.replica: engine for engine in state.engines} if state else {}
    engines = (_service(replicas.get(number), False) for number in range(planned.engines))
    agents = (Service(layout.events(node).exists()) for node in range(planned.agents))
    # A rank that nobody has asked yet has a shard once it serves.
    judges = (_service(ranks.get(number), layout.shard(number).exists()) for number in range(planned.judges))
    roles = ((Role.INFERENCE, engines), (Role.AGENT, agents), (Role.JUDGE, judges))
    return {f"{role}-{number}": service for role, found in roles for number, service in enumerate(found)}


def _service(health: RankHealth | EngineHealth | None, ready_unasked: bool) -> Service:
    if health is None:
        return Service(ready_unasked)
    counts = (health.queue_depth, health.inflight_submits) if isinstance(health, RankHealth) else ()
    return Service(health.is_ready, health.is_gone, "" if health.is_ready else health.reason, *counts)


def faults(layout: RunLayout, state: JobState | None, steps: Mapping[str, StepSeen]) -> Iterator[str]:
    """What went wrong so far, one line each: lost ranks and engines, failed steps, a merge that failed."""
    services: tuple[RankHealth | EngineHealth, ...] = (*state.ranks, *state.engines) if state else ()
    for service in services:
        if service.is_gone:
            yield f"{service.name} is {service.state}: {service.reason}"
    for step in steps.values():
        if step.failed:
            yield f"step {step.name} on {step.host}: {step.words}"
    with suppress(OSError):
        yield f"{layout.merge_failed.name}: {' '.join(layout.merge_failed.read_text(encoding='utf-8').split())}"
