"""Hosts → roles → judge slots → ports → ranks: pure functions of the plan."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from bench.errors import ConfigError
from cluster.study.settings import JobSettings

DEFAULT_PORT = 8800


@dataclass(frozen=True)
class Host:
    """One node of the allocation; one machine may stand for several nodes of a local job."""

    name: str
    cpus: tuple[int, ...]
    sockets: int = 1


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
    """One judge rank. `slot` counts on its node, `seat` over all slots of its machine, out of `seats`."""

    rank: int
    host: Host
    node: int
    slot: int
    seat: int
    seats: int
    router_port: int

    @property
    def judge_port(self) -> int:
        return self.router_port + 1

    @property
    def url(self) -> str:
        return f"http://{self.host.name}:{self.router_port}"


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


def split_of(settings: JobSettings) -> Split:
    return Split(settings.inference_nodes, settings.agent_nodes, settings.judge_nodes)


def plan_job(hosts: Sequence[Host], settings: JobSettings, port: int | None = None) -> Plan:
    """Deal the hosts, in their order, to inference, agents and judges.

    `port` is the first judge port where JUDGE_PORT is unset.

    Raises:
        ConfigError: the allocation is not the sum of the roles, or a port would exceed 65535.
    """
    split = split_of(settings)
    if split.total != len(hosts):
        raise ConfigError(
            f"the roles need {split} nodes, the allocation has {len(hosts)}; ask for --nodes={split.total} "
            f"(`kcourt cluster plan ENV` prints it) or change INFERENCE_NODES, AGENT_NODES or JUDGE_NODES"
        )
    agents_end = split.inference + split.agents
    return Plan(
        tuple(hosts[: split.inference]),
        tuple(hosts[split.inference : agents_end]),
        _judge_slots(hosts[agents_end:], settings.judges_per_node, settings.judge_port or port or DEFAULT_PORT),
    )


def _judge_slots(hosts: Sequence[Host], per_node: int | None, base_port: int) -> tuple[JudgeSlot, ...]:
    """Ranks node-major, then slot-minor. A machine that stands for two nodes counts its seats over both."""
    places = [(node, host, slot) for node, host in enumerate(hosts) for slot in range(per_node or host.sockets)]
    seats = Counter(host.name for _, host, _ in places)
    taken: Counter[str] = Counter()
    slots = []
    for rank, (node, host, slot) in enumerate(places):
        seat = taken[host.name]
        taken[host.name] += 1
        slots.append(JudgeSlot(rank, host, node, slot, seat, seats[host.name], base_port + 2 * seat))
    highest = max((slot.judge_port for slot in slots), default=0)
    if highest > 65535:
        raise ConfigError(f"JUDGE_PORT={base_port} leaves no room: the last judge would need port {highest}; lower it")
    return tuple(slots)


def ports_needed(hosts: Sequence[Host], settings: JobSettings) -> int:
    """How many consecutive ports the fullest judge machine needs."""
    return 2 * max((slot.seats for slot in plan_job(hosts, settings, port=1).judges), default=0)
