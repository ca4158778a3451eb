"""Starts the steps of a job with srun, inside the allocation that this process runs in."""

import os
import re
import time
from collections.abc import Mapping, Sequence
from datetime import datetime

from bench import process
from bench.errors import ConfigError, EnvironmentFault
from cluster.environment import allowed
from cluster.job.allocation import DEFAULT_PORT, Host
from cluster.job.hosts import allocated_hosts, expand, port_block
from cluster.job.launchers import Role, Running, Step
from cluster.job.lines import log_tail
from cluster.job.records import StepState
from cluster.job.step import STOP
from cluster.slurm import asked, facts, shown_job, slurm_environment

# A shared file system may show a record some seconds after it was written.
RECORD_PATIENCE_S = 10.0
LOOK_AT_JOB_EVERY_S = 60.0
ANSWER_WITHIN_S = 30.0
# A job that is being killed cannot wait for a scheduler that does not answer.
HURRY_S = 5.0
_USE_DEVICES = frozenset({Role.JUDGE, Role.INFERENCE})
_OUT_OF_MEMORY = re.compile(r"oom[-_ ]?kill|out of memory|exceeded (job|step)? ?memory", re.IGNORECASE)


class SlurmLauncher:
    """Implements `Launcher` for one job of Slurm."""

    def __init__(self, job_id: str, hosts: Sequence[Host]) -> None:
        self.job_id, self.hosts = job_id, hosts
        self._end: float | None = None
        self._looked_at: float | None = None

    @property
    def seconds_left(self) -> float | None:
        now = time.time()
        if self._looked_at is None or now - self._looked_at >= LOOK_AT_JOB_EVERY_S:
            self._looked_at = now
            if (answer := shown_job(self.job_id, ANSWER_WITHIN_S)).ok:
                self._end = end_time(answer.output)
        return None if self._end is None else self._end - now

    @property
    def kill_in_s(self) -> float | None:
        answer = shown_job(self.job_id, HURRY_S)
        if not answer.ok or facts(answer.output).get("JobState") == "RUNNING":
            return None
        return kill_wait(asked(["scontrol", "show", "config"], HURRY_S).output)

    def first_port(self, count: int) -> int:
        has_whole_nodes = all(host.cpus for host in self.hosts)
        return DEFAULT_PORT if has_whole_nodes else port_block(self.job_id, count)

    def start(self, step: Step) -> Running:
        step.log.parent.mkdir(parents=True, exist_ok=True)
        env = {**allowed(os.environ, step.keys), **step.env}
        argv = srun_argv(self.job_id, step, sorted(env))
        with step.log.open("ab") as log:
            child = process.spawn(argv, env=slurm_environment(os.environ) | env, output=log)
        return Running(step, child, RECORD_PATIENCE_S, without_record)

    def stop(self, steps: Sequence[Running]) -> None:
        self._signal(steps, STOP.name.removeprefix("SIG"))
        for running in steps:
            if running.step.read_begin() is None and running.child.poll() is None:
                # There is no step yet that a signal could reach; its srun still waits for it.
                running.child.terminate()

    def kill(self, steps: Sequence[Running]) -> None:
        self._signal(steps, "KILL")
        for running in steps:
            process.kill_tree(running.child)

    def _signal(self, steps: Sequence[Running], name: str) -> None:
        """Signals go to the steps: srun would make a KILL of most."""
        begun = [begin.slurm_step for running in steps if not running.poll() and (begin := running.step.read_begin())]
        if reached := [step for step in begun if step]:
            # What scancel says of a step is not to be believed, be it good or bad; the records tell what it did.
            asked(["scancel", f"--signal={name}", *reached], ANSWER_WITHIN_S)


def srun_argv(job_id: str, step: Step, names: Sequence[str]) -> list[str]:
    """The command line that starts a step; `names` are the variables it gets beside Slurm's own.

    Every resource is said: a step that asks for none waits for what another step of the node has.
    """
    gpus = step.host.gpus if step.role in _USE_DEVICES else 0
    return [
        "srun",
        f"--jobid={job_id}",
        f"--job-name={step.name}",
        "--overlap",
        "--nodes=1",
        "--ntasks=1",
        f"--nodelist={step.host.name}",
        f"--cpus-per-task={step.host.cpu_count}",
        "--cpu-bind=none",
        "--mem=0",
        f"--gres=gpu:{gpus}" if gpus else "--gres=none",
        "--input=none",
        "--unbuffered",
        f"--kill-on-bad-exit={int(step.role is not Role.MONITOR)}",
        f"--export={','.join(names)}",
        *step.wrapped,
    ]


def without_record(step: Step) -> StepState:
    """What became of a step that wrote no end: its log may hold Slurm's own words."""
    return StepState.OUT_OF_MEMORY if _OUT_OF_MEMORY.search(log_tail(step.log)) else StepState.LOST


def launcher_of(environ: Mapping[str, str]) -> SlurmLauncher:
    """The launcher of the allocation that this process runs in.

    Raises:
        ConfigError: this is no job of Slurm, or its list of hosts is not what Slurm says.
        EnvironmentFault: Slurm does not answer.
    """
    job_id = environ.get("SLURM_JOB_ID")
    if not job_id:
        raise ConfigError("SLURM_JOB_ID is not set: this is no job of Slurm; submit one with `kcourt study submit`")
    names = expand(environ.get("SLURM_JOB_NODELIST", ""))
    described = _answer(["scontrol", "--oneliner", "show", "node", ",".join(names)])
    return SlurmLauncher(job_id, allocated_hosts(names, described, environ))


def _answer(argv: Sequence[str]) -> str:
    answer = asked(argv)
    if not answer.ok:
        raise EnvironmentFault(f"`{' '.join(argv)}` failed: {answer.said}; the job cannot tell its nodes without it")
    return answer.output


def end_time(job: str) -> float | None:
    """When a job's allocation ends, in seconds since the epoch, by `scontrol show job`; None: it has no end."""
    try:
        return datetime.fromisoformat(facts(job).get("EndTime", "")).timestamp()
    except ValueError:
        return None


def kill_wait(config: str) -> float:
    """Seconds between TERM and KILL by `scontrol show config`; Slurm's own default where it is not said."""
    found = re.search(r"^KillWait\s*=\s*(\d+)", config, re.MULTILINE)
    return float(found[1]) if found else 30.0
