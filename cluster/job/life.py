"""The life of one job: plan → prepare → serve → agents → watch → drain → collect → report."""

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from agent.journal import utc_now
from bench.errors import ConfigError, KernelcourtError
from bench.wording import counted
from cluster.job.allocation import Host, Plan, plan_job, ports_needed
from cluster.job.collect import collect
from cluster.job.documents import write_json
from cluster.job.drain import drain
from cluster.job.endings import (
    Cause,
    Interrupts,
    Rules,
    Sight,
    Verdict,
    decide,
    degraded,
    exit_code,
    never_ready,
    out_of_time,
)
from cluster.job.health import RankHealth
from cluster.job.inference import Engine, engines_of, inference_record
from cluster.job.launchers import Launcher, Role, Step
from cluster.job.layout import RunLayout
from cluster.job.prepare import prepare
from cluster.job.progress import Progress, ProgressReader
from cluster.job.roles import agent_step, monitor_step
from cluster.job.services import Services
from cluster.job.state import Phase, StateFile
from cluster.job.summary import Ending, Summary, conclude
from cluster.job.supervise import Beginnings, Steps
from cluster.study.settings import JobSettings
from cluster.study.wave import Wave

READY_PAUSE_S = 0.25
WATCH_PAUSE_S = 0.5
# KEYs that later pieces follow: a job that took them would not do what its rows say.
NOT_YET = ("ARENA_POWER", "ARENA_THRESHOLD")


class View(Protocol):
    """Whoever follows a job while it lives."""

    def phase(self, text: str) -> None:
        """The job has entered a phase, or has something to say."""
        ...

    def progress(self, progress: Progress) -> None:
        """How far the agents are, once or twice a second."""
        ...


@dataclass(frozen=True)
class Job:
    """What every phase of one job needs."""

    wave: Wave
    plan: Plan
    engines: tuple[Engine, ...]
    layout: RunLayout
    steps: Steps
    state: StateFile
    view: View
    launcher: Launcher

    @property
    def settings(self) -> JobSettings:
        return self.wave.settings

    def enter(self, phase: Phase, text: str) -> None:
        """Tell whoever follows that the job is in a phase now, and why."""
        self.view.phase(text)
        self.state.note(phase, left_s=self.launcher.seconds_left, said=text)


@dataclass(frozen=True)
class Lived:
    """How the live part of a job ended, and what was seen last (None: nothing ever answered)."""

    verdict: Verdict
    sight: Sight | None


def run_job(wave: Wave, run_dir: Path, launcher: Launcher, view: View) -> Summary:
    """Live one job from its plan to its report; the folder's name is the job's id.

    Raises:
        ConfigError: the allocation does not fit the roles, or the run is there already.
        EnvironmentFault: this machine lacks something that the job needs.
    """
    started = time.monotonic()
    plan = make_plan(wave.settings, launcher)
    engines = engines_of(wave.settings, plan.inference)
    layout = RunLayout(run_dir)
    prepare(layout, wave, plan)
    job = Job(wave, plan, engines, layout, Steps(launcher, layout), StateFile(layout), view, launcher)
    with Interrupts() as interrupts:
        try:
            lived = _live(job, interrupts)
        finally:
            job.steps.kill_all()
        merged = _collect(job, lived)
    cause, is_degraded = lived.verdict.cause, degraded(lived.sight)
    code = exit_code(cause, is_degraded, merged)
    seconds = round(time.monotonic() - started, 3)
    ending = Ending(cause, lived.verdict.reason, code, seconds, is_degraded)
    summary = conclude(layout, ending)
    job.state.note(Phase.DONE, said=f"exit {int(code)} ({code.name.lower()})")
    return summary


def make_plan(settings: JobSettings, launcher: Launcher) -> Plan:
    """Deal the launcher's hosts to the roles; raises ConfigError where they do not fit or cannot be served."""
    hosts = launcher.hosts
    port = settings.judge_port or launcher.first_port(ports_needed(hosts, settings))
    plan = plan_job(hosts, settings, port)
    if settings.serves_only:
        raise ConfigError(
            "AGENT_NODES=0, JUDGE_NODES=0: a job that only serves a model cannot be started yet; add agents and judges"
        )
    if settings.container_runtime not in (None, "none"):
        raise ConfigError(
            f"CONTAINER_RUNTIME={settings.container_runtime}: this version starts no containers; set none"
            " to run on the host"
        )
    for key in NOT_YET:
        if settings.values[key] != JobSettings.model_fields[key.lower()].default:
            raise ConfigError(f"{key}={settings.values[key]}: nothing uses this key yet; leave it out")
    return plan


def _live(job: Job, interrupts: Interrupts) -> Lived:
    """Serve, let the agents work, and take everything down again."""
    what = counted(len(job.plan.judges), "judge")
    if job.engines:
        what += f" and {counted(len(job.engines), 'engine')}"
    job.enter(Phase.STARTING, f"starting {what}; each judge grades its own references first")
    for host in _machines(job.plan):
        job.steps.start(monitor_step(job.layout, host))
    services = Services(job.layout, job.settings, job.plan, job.engines, job.steps)
    try:
        verdict = _wait_ready(job, services, interrupts)
        lived = Lived(verdict, None) if verdict else _work(job, services, interrupts)
        return _tear_down(job, lived, services, interrupts)
    finally:
        services.close()


def _machines(plan: Plan) -> list[Host]:
    """Every machine of the job once."""
    return list({host.name: host for host in (*plan.inference, *plan.agents, *(j.host for j in plan.judges))}.values())


def _wait_ready(job: Job, services: Services, interrupts: Interrupts) -> Verdict | None:
    """Wait until every service is ready; one that is gone ends the wait at once, and so does the wall clock."""
    start = time.monotonic()
    while interrupts.verdict is None:
        health, waited = services.health(), time.monotonic() - start
        job.steps.note_ends()
        job.state.note(Phase.STARTING, ranks=health.ranks, engines=health.engines, left_s=job.launcher.seconds_left)
        found = services.with_steps(health)
        if all(service.is_ready for service, _ in found):
            _record_engines(job, services)
            return None
        late = any(not service.is_ready and waited > _ready_within_s(job, step) for service, step in found)
        if late or any(service.is_gone for service, _ in found):
            return never_ready(found, waited)
        if verdict := out_of_time(job.launcher.seconds_left, job.settings.reserve_s):
            return verdict
        interrupts.pause(READY_PAUSE_S)
    return interrupts.verdict


def _ready_within_s(job: Job, step: Step) -> float:
    is_engine = step.role is Role.INFERENCE
    return job.settings.inference_ready_seconds if is_engine else job.settings.judge_ready_seconds


def _record_engines(job: Job, services: Services) -> None:
    if job.engines:
        record = inference_record(job.settings, job.engines, services.engine_version(), utc_now())
        write_json(job.layout.inference_record, record)


def _work(job: Job, services: Services, interrupts: Interrupts) -> Lived:
    """Start the agents and watch until there is a reason to stop."""
    nodes = range(len(job.plan.agents))
    job.enter(Phase.WORKING, f"{counted(len(job.wave.problems), 'problem')} for {counted(len(nodes), 'agent node')}")
    agents = [job.steps.start(agent_step(job.layout, job.settings, job.plan, node)) for node in nodes]
    beginnings = Beginnings(agents)
    rules = Rules(job.settings.reserve_s, job.settings.agent_stall_abort_seconds, job.settings.agent_failover)
    reader = ProgressReader(job.layout, len(job.wave.problems), len(agents), len(job.plan.judges))
    while True:
        health = services.health()
        progress = reader.read(health.ranks)
        job.view.progress(progress)
        job.steps.note_ends()
        ends = tuple(agent.poll() for agent in agents)
        left_s = job.launcher.seconds_left
        sight = Sight(health.ranks, ends, progress.quiet_s, left_s, health.engines, beginnings.late())
        job.state.note(
            Phase.WORKING, ranks=sight.ranks, engines=sight.engines, left_s=sight.left_s, quiet_s=sight.quiet_s
        )
        verdict = interrupts.verdict or decide(sight, rules)
        if verdict:
            return Lived(verdict, sight)
        interrupts.pause(WATCH_PAUSE_S)


def _tear_down(job: Job, lived: Lived, services: Services, interrupts: Interrupts) -> Lived:
    """The one way down, whatever the cause: agents, then what the judges still hold, then the services.

    Returns how the job lived in the end: a drain may be interrupted, or see a rank lost.
    """
    verdict = lived.verdict
    job.enter(Phase.STOPPING, f"{verdict.cause}: {verdict.reason}")
    grace_s = _grace_s(job, verdict)
    job.steps.stop(Role.AGENT, grace_s=grace_s)
    if verdict.cause is Cause.FINISHED:
        lived = _drain(job, lived, services, interrupts)
    job.steps.stop(Role.JUDGE, Role.INFERENCE, Role.MONITOR, grace_s=grace_s)
    return lived


def _drain(job: Job, lived: Lived, services: Services, interrupts: Interrupts) -> Lived:
    """Wait for the submits that are still in flight, and for ranks that may hold some."""
    drained = drain(
        lambda: _seen_draining(job, services),
        interrupts.pause,
        _drain_limit(job),
        lambda: interrupts.verdict is not None,
    )
    sight = lived.sight and replace(lived.sight, ranks=drained.ranks)
    if drained.complete:
        return Lived(lived.verdict, sight)
    left = ", ".join(f"{number} at rank {rank}" for rank, number in drained.left.items())
    job.enter(Phase.STOPPING, f"gave up waiting for submits in flight after {drained.seconds:.0f} s; left: {left}")
    return Lived(interrupts.verdict or lived.verdict, sight)


def _seen_draining(job: Job, services: Services) -> list[RankHealth]:
    """What the ranks say, noted for whoever watches."""
    ranks = services.ranks()
    job.state.note(Phase.DRAINING, ranks=ranks, left_s=job.launcher.seconds_left)
    return ranks


def _grace_s(job: Job, verdict: Verdict) -> float:
    """Seconds that steps have to stop in; a part of what is left where the scheduler has begun to kill the job."""
    grace_s = job.settings.step_stop_grace_seconds
    kill_in_s = job.launcher.kill_in_s if verdict.cause is Cause.CANCELLED else None
    return grace_s if kill_in_s is None else min(grace_s, kill_in_s / 3)


def _drain_limit(job: Job) -> float:
    """Seconds that a drain may take: what is left beyond the reserve, else as long as the reserve."""
    reserve = job.settings.judge_drain_reserve_seconds
    left = job.launcher.seconds_left
    return reserve if left is None else max(0.0, left - reserve)


def _collect(job: Job, lived: Lived) -> bool:
    """Merge what there is; a failure leaves MERGE_FAILED and every shard as it was."""
    if lived.sight is None:
        return True
    job.enter(Phase.MERGING, "merging shards and episodes")
    try:
        collect(job.layout)
    except KernelcourtError as error:
        job.enter(Phase.MERGING, f"the merge failed: {error}\n{job.layout.merge_failed} says how to recover")
        return False
    return True
