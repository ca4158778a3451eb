"""The life of one job: plan → prepare → serve → agents → watch → drain → collect → report."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from bench.errors import ConfigError, KernelcourtError
from cluster.job.allocation import Plan, plan_job, ports_needed
from cluster.job.collect import collect
from cluster.job.drain import drain
from cluster.job.launchers import Launcher, Role, Running
from cluster.job.layout import RunLayout
from cluster.job.prepare import prepare
from cluster.job.progress import Progress, ProgressReader
from cluster.job.ranks import GONE, RankHealth, Ranks, RankState
from cluster.job.roles import agent_step, judge_step
from cluster.job.summary import Ending, Summary, conclude
from cluster.job.supervise import (
    Cause,
    Interrupts,
    Rules,
    Sight,
    Steps,
    Verdict,
    decide,
    exit_code,
    never_ready,
    out_of_time,
)
from cluster.study.settings import JobSettings
from cluster.study.wave import Wave

READY_PAUSE_S = 0.25
WATCH_PAUSE_S = 0.5
# KEYs that later pieces follow: a job that took them would not do what its rows say.
NOT_YET = (
    *("AGENT_LLM_MODE", "AGENT_BUDGET_MODE", "AGENT_MAX_ITERATIONS", "GRADE_CPUS", "JUDGE_GRADES_PER_HOUR"),
    *("ARENA_POWER", "ARENA_THRESHOLD"),
)


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
    layout: RunLayout
    steps: Steps
    view: View
    launcher: Launcher

    @property
    def settings(self) -> JobSettings:
        return self.wave.settings


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
    layout = RunLayout(run_dir)
    prepare(layout, wave, plan)
    job = Job(wave, plan, layout, Steps(launcher, layout), view, launcher)
    with Interrupts() as interrupts:
        try:
            lived = _live(job, interrupts)
        finally:
            job.steps.kill_all()
        merged = _collect(job, lived)
    code = exit_code(lived.verdict, lived.sight, merged)
    ending = Ending(lived.verdict.cause, lived.verdict.reason, code, round(time.monotonic() - started, 3))
    return conclude(layout, ending)


def make_plan(settings: JobSettings, launcher: Launcher) -> Plan:
    """Deal the launcher's hosts to the roles; raises ConfigError where they do not fit or cannot be served."""
    hosts = launcher.hosts
    port = settings.judge_port or launcher.first_port(ports_needed(hosts, settings))
    plan = plan_job(hosts, settings, port)
    if plan.inference:
        raise ConfigError(
            f"INFERENCE_NODES={len(plan.inference)}: no engine that serves a model can be started yet; "
            "set INFERENCE_NODES=0 and a HARNESS that needs no model (scripted)"
        )
    if settings.container_runtime not in (None, "none"):
        raise ConfigError(
            f"CONTAINER_RUNTIME={settings.container_runtime}: no container can be started yet; set none: on the host"
        )
    for key in NOT_YET:
        if settings.values[key] != JobSettings.model_fields[key.lower()].default:
            raise ConfigError(f"{key}={settings.values[key]}: nothing follows this key yet; leave it out")
    if settings.device != "cpu":
        raise ConfigError(f"DEVICE={settings.device}: judges grade on CPUs alone yet; set DEVICE=cpu")
    return plan


def _live(job: Job, interrupts: Interrupts) -> Lived:
    """Serve, let the agents work, and take everything down again."""
    judges = [job.steps.start(judge_step(job.layout, slot)) for slot in job.plan.judges]
    ranks = Ranks(job.layout.job_id, job.plan.judges, judges)
    try:
        verdict = _wait_ready(job, ranks, judges, interrupts)
        lived = Lived(verdict, None) if verdict else _work(job, ranks, interrupts)
        late = _tear_down(job, lived.verdict, ranks, interrupts)
    finally:
        ranks.close()
    return replace(lived, verdict=late) if late else lived


def _wait_ready(job: Job, ranks: Ranks, judges: Sequence[Running], interrupts: Interrupts) -> Verdict | None:
    """Wait until each judge is healthy; one that died or is unfit ends the wait at once, and so does the wall clock."""
    job.view.phase(f"starting {len(judges)} judges; each grades its own references first")
    start = time.monotonic()
    while interrupts.verdict is None:
        healths, waited = ranks.health(), time.monotonic() - start
        job.steps.note_ends()
        states = {health.state for health in healths}
        if states == {RankState.READY}:
            return None
        if states & GONE or waited > job.settings.judge_ready_seconds:
            return never_ready(judges, healths, waited)
        if verdict := out_of_time(job.launcher.seconds_left, job.settings.reserve_s):
            return verdict
        interrupts.pause(READY_PAUSE_S)
    return interrupts.verdict


def _work(job: Job, ranks: Ranks, interrupts: Interrupts) -> Lived:
    """Start the agents and watch until there is a reason to stop."""
    job.view.phase(f"{len(job.wave.problems)} problems for {len(job.plan.agents)} agent nodes")
    agents = [job.steps.start(agent_step(job.layout, job.plan, node)) for node in range(len(job.plan.agents))]
    rules = Rules(job.settings.reserve_s, job.settings.agent_stall_abort_seconds, job.settings.agent_failover)
    reader = ProgressReader(job.layout, len(job.wave.problems), len(agents), len(job.plan.judges))
    while True:
        healths = ranks.health()
        progress = reader.read(healths)
        job.view.progress(progress)
        job.steps.note_ends()
        sight = _look(job, healths, agents, progress)
        verdict = interrupts.verdict or decide(sight, rules)
        if verdict:
            return Lived(verdict, sight)
        interrupts.pause(WATCH_PAUSE_S)


def _look(job: Job, healths: Sequence[RankHealth], agents: Sequence[Running], progress: Progress) -> Sight:
    codes = tuple(agent.poll() for agent in agents)
    return Sight(tuple(healths), codes, progress.quiet_s, job.launcher.seconds_left)


def _tear_down(job: Job, verdict: Verdict, ranks: Ranks, interrupts: Interrupts) -> Verdict | None:
    """The one way down, whatever the cause: agents, then what the judges still hold, then the judges.

    Returns the interruption that cut a drain short, if one did.
    """
    cut = None
    job.view.phase(f"{verdict.cause}: {verdict.reason}")
    grace = job.settings.step_stop_grace_seconds
    job.steps.stop(Role.AGENT, grace)
    if verdict.cause is Cause.FINISHED:
        drained = drain(ranks.health, interrupts.pause, _drain_limit(job), lambda: interrupts.verdict is not None)
        if not drained.complete:
            cut = interrupts.verdict
            job.view.phase(f"gave up waiting for submits in flight after {drained.seconds:.0f} s: {drained.left}")
    job.steps.stop(Role.JUDGE, grace)
    return cut


def _drain_limit(job: Job) -> float:
    """Seconds that a drain may take: what is left beyond the reserve, else as long as the reserve."""
    reserve = job.settings.judge_drain_reserve_seconds
    left = job.launcher.seconds_left
    return reserve if left is None else max(0.0, left - reserve)


def _collect(job: Job, lived: Lived) -> bool:
    """Merge what there is; a failure leaves MERGE_FAILED and every shard as it was."""
    if lived.sight is None:
        return True
    job.view.phase("merging shards and episodes")
    try:
        collect(job.layout)
    except KernelcourtError as error:
        job.view.phase(f"the merge failed: {error}\n{job.layout.merge_failed} says how to recover")
        return False
    return True
