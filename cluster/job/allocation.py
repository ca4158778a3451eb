"""Hosts → roles → judge slots → ports, GPUs, CPUs → ranks: pure functions of the plan."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from agent.striping import striped
from bench.errors import ConfigError
from bench.wording import counted
from cluster.study.settings import JobSettings

DEFAULT_PORT = 8800
# The timed code and the judge's clock.
CPUS_TO_GRADE = 2


@dataclass(frozen=True)
class Host:
    """One node of the allocation; one machine, known by its address, may stand for several nodes.

    `cpus` are in the order of sockets and cores, the threads of a core side by side. There are none where the job has
    a part of the node: then `granted` says how many, and only the job's steps see which. `address` is what other
    nodes connect to (empty: the name), `gpus` how many the job may use.
    """

    name: str
    cpus: tuple[int, ...]
    sockets: int = 1
    address: str = ""
    gpus: int = 0
    granted: int = 0

    @property
    def reached_at(self) -> str:
        """What other nodes connect to."""
        return self.address or self.name

    @property
    def cpu_count(self) -> int:
        """How many CPUs the job may use there; 0: not known."""
        return len(self.cpus) or self.granted


@dataclass(frozen=True)
class Split:
    """How many nodes each role has."""

    inference: int
    agents: int
    judges: int

    @property
    def total(self) -> int:
        return self.inference + self.agents + self.judges

    def __str__(self) -> str:
        return f"{self.inference} inference + {self.agents} agent + {self.judges} judge = {self.total}"


@dataclass(frozen=True)
class JudgeSlot:
    """One judge rank. `slot` counts on its node, `seat` over all slots of its machine, out of `seats`.

    `cpus` is its own part of the machine's CPUs, all of them where a part would be too small to grade on, and none
    where the host has none to name. `gpus` are consecutive indices on the node.
    """

    rank: int
    host: Host
    node: int
    slot: int
    seat: int
    seats: int
    router_port: int
    cpus: tuple[int, ...] = ()
    gpus: tuple[int, ...] = ()

    @property
    def judge_port(self) -> int:
        return self.router_port + 1

    @property
    def url(self) -> str:
        return f"http://{self.host.reached_at}:{self.router_port}"


@dataclass(frozen=True)
class Plan:
    """Who does what in one job: the judges in rank order, the agent nodes in node order."""

    inference: tuple[Host, ...]
    agents: tuple[Host, ...]
    judges: tuple[JudgeSlot, ...]

    @property
    def urls(self) -> list[str]:
        """Judge URLs; a rank is its position here."""
        return [judge.url for judge in self.judges]

    def home_rank(self, problem: int) -> int:
        """Rank that serves the problem of this global index."""
        return striped(problem, len(self.judges))

    def replica(self, worker: int) -> int:
        """Inference replica, one a node, that serves the worker of this global index (node-major)."""
        return striped(worker, len(self.inference))


def split_of(settings: JobSettings) -> Split:
    return Split(settings.inference_nodes, settings.agent_nodes, settings.judge_nodes)


def plan_job(hosts: Sequence[Host], settings: JobSettings, port: int | None = None) -> Plan:
    """Deal the hosts, in their order, to inference, agents and judges.

    `port` is the first judge port where JUDGE_PORT is unset.

    Raises:
        ConfigError: the allocation is not the sum of the roles, a port would exceed 65535, the slots of a machine
            want more CPUs than it has, or judges that grade on GPUs have none of their own.
    """
    split = split_of(settings)
    if split.total != len(hosts):
        raise ConfigError(
            f"the roles need {split} nodes, the allocation has {len(hosts)}; ask for --nodes={split.total} "
            f"(`kcourt cluster plan ENV` prints it) or change INFERENCE_NODES, AGENT_NODES or JUDGE_NODES"
        )
    agents_end = split.inference + split.agents
    plan = Plan(
        tuple(hosts[: split.inference]),
        tuple(hosts[split.inference : agents_end]),
        _judge_slots(hosts[agents_end:], settings, settings.judge_port or port or DEFAULT_PORT),
    )
    if settings.grades_on_gpu:
        _check_gpus(plan, settings.device)
    return plan


def judges_on(host: Host, settings: JobSettings) -> int:
    """Judge slots of a node: JUDGES_PER_NODE, else one a GPU where those grade, else one a socket; no more than its
    GPUs where it has any.
    """
    wanted = settings.judges_per_node or (host.gpus if settings.grades_on_gpu else host.sockets) or 1
    return min(wanted, host.gpus) if host.gpus else wanted


def _check_gpus(plan: Plan, device: str) -> None:
    """Raises ConfigError unless every judge has a GPU that nobody else of the job has."""
    engines = {host.reached_at for host in plan.inference}
    for slot in plan.judges:
        host = slot.host
        if not host.gpus:
            raise ConfigError(
                f"DEVICE={device}: the job has no GPU on {host.name}, where judges are to grade on one; ask for some "
                "with --gpus-per-node=N or GPUS_PER_NODE, or set DEVICE=cpu"
            )
        if slot.seats > host.gpus:
            raise ConfigError(
                f"DEVICE={device}: {slot.seats} judges on {host.name}, which has {counted(host.gpus, 'GPU')} for them, "
                "and each needs one of its own; lower JUDGES_PER_NODE or JUDGE_NODES"
            )
        if host.reached_at in engines:
            raise ConfigError(
                f"DEVICE={device}: the engine and the judges are both on {host.name}, and an engine takes every GPU of "
                "its machine; take the model from a service (INFERENCE_SOURCE), or give the job more machines"
            )


def _judge_slots(hosts: Sequence[Host], settings: JobSettings, base_port: int) -> tuple[JudgeSlot, ...]:
    """Ranks node-major, then slot-minor. A machine that stands for two nodes counts its seats over both."""
    places = [(node, host, slot) for node, host in enumerate(hosts) for slot in range(judges_on(host, settings))]
    seats = Counter(host.reached_at for _, host, _ in places)
    taken: Counter[str] = Counter()
    slots = []
    for rank, (node, host, slot) in enumerate(places):
        seat, of = taken[host.reached_at], seats[host.reached_at]
        taken[host.reached_at] += 1
        cpus = _cpus(host, seat, of, settings.grade_cpus)
        slots.append(JudgeSlot(rank, host, node, slot, seat, of, base_port + 2 * seat, cpus, _gpus(host, seat, of)))
    highest = max((slot.judge_port for slot in slots), default=0)
    if highest > 65535:
        raise ConfigError(
            f"JUDGE_PORT={base_port} is too high: the last judge would listen at port {highest}, beyond 65535; lower it"
        )
    return tuple(slots)


def _cpus(host: Host, seat: int, seats: int, wanted: int | None) -> tuple[int, ...]:
    """A seat's own CPUs, its socket's where each has one judge; too few to grade on each are shared by all seats."""
    if wanted and 0 < host.cpu_count < wanted * seats:
        raise ConfigError(
            f"GRADE_CPUS={wanted} for {seats} judges on {host.name} is {wanted * seats} CPUs, and the job has "
            f"{host.cpu_count} there; lower GRADE_CPUS or JUDGES_PER_NODE"
        )
    if len(host.cpus) < CPUS_TO_GRADE * seats:
        return host.cpus
    return _part(host.cpus, seat, seats)[:wanted]


def _gpus(host: Host, seat: int, seats: int) -> tuple[int, ...]:
    """A seat's own GPUs; machines that stand for several nodes may have fewer than seats, which then share."""
    return _part(range(host.gpus), seat % host.gpus, min(seats, host.gpus)) if host.gpus else ()


def _part(things: Sequence[int], seat: int, seats: int) -> tuple[int, ...]:
    """The seat's consecutive part of things that are dealt evenly, within one."""
    return tuple(things[seat * len(things) // seats : (seat + 1) * len(things) // seats])


def ports_needed(hosts: Sequence[Host], settings: JobSettings) -> int:
    """How many consecutive ports the fullest judge machine needs."""
    return 2 * max((slot.seats for slot in plan_job(hosts, settings, port=1).judges), default=0)


def judge_nodes_for(peak: int, settings: JobSettings, host: Host) -> int:
    """JUDGE_NODES that a peak of grades an hour needs on nodes like `host`.

    Raises:
        ConfigError: nobody says how many grades a slot makes.
    """
    if settings.judge_grades_per_hour is None:
        raise ConfigError(
            "JUDGE_GRADES_PER_HOUR is unset: say how many grades one judge slot makes an hour, as a job on this "
            "hardware has shown"
        )
    return ceil(peak / (settings.judge_grades_per_hour * judges_on(host, settings)))
