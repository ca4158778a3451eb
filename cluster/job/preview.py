"""What a job would be: its plan on the hosts that it may get, and the command that would submit it."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.job.allocation import Host, Plan, judge_nodes_for, judges_on, plan_job, split_of
from cluster.job.launchers.local import this_host
from cluster.study.job_shape import gpus_asked, job_shape
from cluster.study.problems import problems_of
from cluster.study.queue import logs_folder, sbatch_argv
from cluster.study.settings import JobSettings, read_settings
from cluster.study.snapshots import Snapshot
from cluster.study.systems import System


@dataclass(frozen=True)
class Asked:
    """What an operator says beside the env file: sbatch's options, and the peak of grades an hour if one is given."""

    system: System
    flags: Mapping[str, str]
    environ: Mapping[str, str]
    peak: int | None = None

    @property
    def on_slurm(self) -> bool:
        return self.system.facts.launcher == "slurm"


@dataclass(frozen=True)
class Preview:
    """One setup on one allocation; `sbatch` is empty on a system without Slurm, `judge_nodes` None without a peak."""

    settings: JobSettings
    problems: int
    plan: Plan
    node: Host
    sbatch: tuple[str, ...]
    notes: tuple[str, ...]
    peak: int | None
    judge_nodes: int | None

    @property
    def workers(self) -> int:
        """Agents that the job runs at once; a worker's global index counts node by node."""
        return len(self.plan.agents) * self.settings.agents_per_node

    def document(self) -> dict[str, Any]:
        """The preview as JSON-able values."""
        served = Counter(map(self.plan.home_rank, range(self.problems))) if self.plan.judges else Counter()
        asking = Counter(map(self.plan.replica, range(self.workers))) if self.plan.inference else Counter()
        judges = [
            {
                **{"rank": slot.rank, "host": slot.host.name, "node": slot.node, "slot": slot.slot, "url": slot.url},
                **{"router_port": slot.router_port, "judge_port": slot.judge_port},
                **{"cpus": slot.cpus, "gpus": slot.gpus, "problems": served[slot.rank]},
            }
            for slot in self.plan.judges
        ]
        return {
            "setup": self.settings.setup,
            "nodes": split_of(self.settings).total,
            "inference": [host.name for host in self.plan.inference],
            "agents": [host.name for host in self.plan.agents],
            "judges": judges,
            "workers_of_replica": [asking[replica] for replica in range(len(self.plan.inference))],
            "sbatch": list(self.sbatch) or None,
            "notes": self.notes,
            "judge_nodes_for_peak": self.judge_nodes,
        }

    def sentences(self) -> Iterator[str]:
        """What tables do not say: who serves whom, what may still change, how many judges a peak needs."""
        settings, ranks, replicas = self.settings, len(self.plan.judges), len(self.plan.inference)
        if ranks:
            yield f"problem i has its home at rank i mod {ranks}: {_dealt(self.problems, 'problems', ranks)} a rank"
        if replicas and self.workers:
            yield f"worker w asks replica w mod {replicas}: {_dealt(self.workers, 'workers', replicas)} a replica"
        if ranks and judges_on(self.node, settings) < (settings.judges_per_node or self.node.sockets):
            yield f"a node with {self.node.gpus} GPUs has no more judge slots than that: each has a GPU of its own"
        if ranks and not self.node.cpus:
            yield "nobody says how many CPUs a node has: write `nodes: {cpus: N}` into a site file to see each slot's"
        if ranks and self.sbatch and settings.judge_port is None:
            yield "ports are these where the job has whole nodes, else those of a block that its id decides"
        if self.judge_nodes:
            yield f"{self.peak} grades an hour, {settings.judge_grades_per_hour} a slot: JUDGE_NODES={self.judge_nodes}"
        yield from (f"note: {note}" for note in self.notes)


def _dealt(things: int, what: str, places: int) -> str:
    least, most = things // places, -(-things // places)
    return f"{things} {what}, {least if least == most else f'{least} or {most}'}"


def preview(env: Path, names: Sequence[str], asked: Asked) -> Preview:
    """Plan the job of one env file; without `names` on as many nodes as it needs.

    In the command that submits, the env file stands where its snapshot will.

    Raises:
        ConfigError: the file or its problems are wrong, the hosts do not fit the roles, or the system cannot give
            what is asked for.
        EnvironmentFault: this machine is what is planned for, and lacks the GPUs of DEVICE.
    """
    settings = read_settings(env)
    problems = 0 if settings.serves_only else len(problems_of(settings))
    node = node_of(asked, settings)
    plan = plan_of(asked, settings, node, names)
    shape = job_shape(settings, asked.system, asked.flags, asked.environ, problems) if asked.on_slurm else []
    snapshot, logs = Snapshot(settings.setup, env.absolute()), logs_folder(settings.kcourt_scratch)
    return Preview(
        settings,
        problems,
        plan,
        node,
        tuple(sbatch_argv(shape, [snapshot], logs, settings, asked.environ)) if asked.on_slurm else (),
        tuple(option.note for option in shape if option.note),
        asked.peak,
        judge_nodes_for(asked.peak, settings, node) if asked.peak else None,
    )


def plan_of(asked: Asked, settings: JobSettings, node: Host, names: Sequence[str] = ()) -> Plan:
    """The plan of a job on nodes like `node`; raises ConfigError where they do not fit the roles."""
    names = names or _unnamed(asked, settings, node)
    return plan_job([Host(name, node.cpus, node.sockets, gpus=node.gpus) for name in names], settings)


def node_of(asked: Asked, settings: JobSettings) -> Host:
    """A node of the system as far as it is known; this machine where there is no Slurm."""
    if not asked.on_slurm:
        return this_host(settings.device)
    facts = asked.system.facts.nodes
    said = (gpus_asked(asked.flags, asked.environ), settings.gpus_per_node, facts.gpus)
    gpus = next((number for number in said if number is not None), 0)
    return Host("node", tuple(range(facts.cpus or 0)), facts.sockets or 1, gpus=gpus)


def _unnamed(asked: Asked, settings: JobSettings, node: Host) -> list[str]:
    """This machine for every node, or names for nodes that Slurm has yet to choose."""
    numbers = range(1, settings.nodes + 1)
    return [f"node{number}" if asked.on_slurm else node.name for number in numbers]
