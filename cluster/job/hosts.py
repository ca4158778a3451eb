"""The hosts of a job of Slurm: read from host lists, `scontrol show node` and the job's own variables."""

import re
import socket
from collections.abc import Callable, Mapping, Sequence
from math import ceil
from pathlib import Path

from bench.errors import ConfigError, EnvironmentFault, UsageError
from cluster.job.allocation import DEFAULT_PORT, Host
from cluster.slurm import Answer, asked, facts

EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
BLOCK_PORTS = 64
Facts = Mapping[str, str]  # key → value, as Slurm prints a node


def expand(host_list: str) -> list[str]:
    """Names of a host list, in its order: `n1,n2` is read here, one with brackets by `scontrol show hostnames`.

    Raises:
        UsageError: a bracket is open.
        EnvironmentFault: there are brackets, and no Slurm to read them.
    """
    if host_list.count("[") != host_list.count("]"):
        raise UsageError(f"'{host_list}': a bracket is open; write n[1-4], or n1,n2,n3,n4")
    if "[" not in host_list:
        return [name.strip() for name in host_list.split(",") if name.strip()]
    return _read_by_slurm(host_list)


def _read_by_slurm(host_list: str) -> list[str]:
    try:
        answer = asked(["scontrol", "show", "hostnames", host_list])
    except EnvironmentFault as error:
        answer = Answer(False, str(error))
    if not answer.ok:
        raise EnvironmentFault(
            f"'{host_list}': only Slurm's scontrol can expand brackets, and it failed: {answer.said.splitlines()[-1]}; "
            "run this where Slurm is installed, or write the names out: n1,n2,n3,n4"
        )
    # A warning among the names has spaces, a name has none.
    return [line for line in answer.output.splitlines() if line and " " not in line]


def ipv4_of(address: str) -> str:
    """The IPv4 of a node's address; raises OSError where it has none."""
    return str(socket.getaddrinfo(address, None, socket.AF_INET, socket.SOCK_STREAM)[0][4][0])


def allocated_hosts(
    names: Sequence[str], nodes: str, environ: Mapping[str, str], resolve: Callable[[str], str] = ipv4_of
) -> list[Host]:
    """The hosts of a job, in the order of `names`; `nodes` is what `scontrol show node` prints of them.

    `environ` is that of the job; it says how many nodes, and how many CPUs and GPUs of each, the job has.

    Raises:
        ConfigError: a variable is missing or wrong, or not every node of the job is named.
        EnvironmentFault: Slurm does not describe a node, or a node has no IPv4.
    """
    count = _variable(environ, "SLURM_JOB_NUM_NODES")
    if count != str(len(names)):
        raise ConfigError(
            f"the host list names {len(names)} nodes ({', '.join(names[:4])}{', ...' if names[4:] else ''}), and "
            f"SLURM_JOB_NUM_NODES={count}; a job takes both from Slurm: let nothing set SLURM_ variables before it"
        )
    granted = cpus_per_node(_variable(environ, "SLURM_JOB_CPUS_PER_NODE"))
    if len(granted) != len(names):
        raise ConfigError(
            f"SLURM_JOB_CPUS_PER_NODE describes {len(granted)} nodes, and the job has {len(names)}; a job takes both "
            "from Slurm: let nothing set SLURM_ variables before it"
        )
    described, gpus = read_nodes(nodes), _gpus_granted(environ)
    return [_host(name, described, cpus, gpus, resolve) for name, cpus in zip(names, granted, strict=True)]


def _variable(environ: Mapping[str, str], name: str) -> str:
    if name not in environ:
        raise ConfigError(f"{name} is not set: this is no job of Slurm; submit one with `kcourt study submit`")
    return environ[name]


def cpus_per_node(text: str) -> list[int]:
    """CPUs of each node of a job, from SLURM_JOB_CPUS_PER_NODE as `2(x3),4`; raises ConfigError for another form."""
    counts = []
    for part in text.split(","):
        found = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part)
        if found is None:
            raise ConfigError(
                f"SLURM_JOB_CPUS_PER_NODE={text}: '{part}' is not of the form 4 or 4(x2); let nothing but Slurm set it"
            )
        counts += [int(found[1])] * int(found[2] or 1)
    return counts


def _gpus_granted(environ: Mapping[str, str]) -> int:
    """GPUs of a node that the job asked for, as 4 or mi300:4; else those that it has on its first node."""
    number = environ.get("SLURM_GPUS_PER_NODE", environ.get("SLURM_GPUS_ON_NODE", "0")).rpartition(":")[2]
    if not number.isdecimal():
        raise ConfigError(f"Slurm says '{number}' for the GPUs of a node, which is no number; give --gpus-per-node=N")
    return int(number)


def read_nodes(text: str) -> Mapping[str, Facts]:
    """Node → its facts, from `scontrol show node` with or without `--oneliner`."""
    nodes = [facts(text) for text in re.split(r"^(?=NodeName=)", text, flags=re.MULTILINE)]
    return {node["NodeName"]: node for node in nodes if "NodeName" in node}


def _host(name: str, nodes: Mapping[str, Facts], granted: int, gpus: int, resolve: Callable[[str], str]) -> Host:
    """One node as the job has it; a part of a node counts as one socket."""
    if name not in nodes:
        raise EnvironmentFault(f"Slurm does not describe node {name}; `scontrol show node {name}` must print it")
    node = nodes[name]
    address = node.get("NodeAddr", name)
    try:
        reached = resolve(address)
    except OSError as error:
        raise EnvironmentFault(
            f"node {name}: its address '{address}' has no IPv4 here ({error}); the nodes of a job reach its judges by "
            "IPv4: set NodeAddr in slurm.conf, or enter the name in DNS or /etc/hosts"
        ) from error
    cpus, usable_gpus = _cpus(name, node), min(gpus, gpu_count(node.get("Gres", "")))
    if granted < len(cpus):
        return Host(name, (), 1, reached, usable_gpus, granted)
    return Host(name, cpus, _number(name, node, "Sockets"), reached, usable_gpus)


def _number(name: str, node: Facts, key: str) -> int:
    value = node.get(key, "")
    if not value.isdecimal():
        raise EnvironmentFault(f"`scontrol show node {name}` says {key}={value}, which is no number; mend slurm.conf")
    return int(value)


def _cpus(name: str, node: Facts) -> tuple[int, ...]:
    """A node's CPUs in the order of its cores, without those that are reserved for the system.

    Linux counts the first threads of all cores before the second ones; Slurm reserves by the place in this order.
    """
    total = _number(name, node, "CPUTot")
    cores = min(total, _number(name, node, "Sockets") * _number(name, node, "CoresPerSocket"))
    ordered = sorted(range(total), key=lambda cpu: (cpu % cores, cpu))
    reserved = _indices(node.get("CPUSpecList", ""))
    return tuple(cpu for place, cpu in enumerate(ordered) if place not in reserved)


def _indices(text: str) -> set[int]:
    """The numbers of a list as `0-1,8`."""
    spans = [tuple(map(int, part.split("-"))) for part in text.split(",") if part]
    return {index for span in spans for index in range(span[0], span[-1] + 1)}


def gpu_count(gres: str) -> int:
    """GPUs in a node's Gres, of all types: `gpu:4`, `gpu:mi300:4(S:0-3),nic:2`, `(null)`."""
    entries = re.sub(r"\([^)]*\)", "", gres).split(",")
    found = [entry.split(":") for entry in entries]
    return sum(int(words[-1]) for words in found if words[0] == "gpu" and words[-1].isdecimal())


def port_block(job_id: str, count: int, range_file: Path = EPHEMERAL) -> int:
    """First of `count` ports of a job that shares its nodes: jobs whose ids follow each other never meet.

    The block ends below the ports that this machine gives to connections, which `range_file` names.

    Raises:
        ConfigError: there is no room for so many.
    """
    below = int(range_file.read_text(encoding="ascii").split()[0])
    width = BLOCK_PORTS * max(1, ceil(count / BLOCK_PORTS))
    blocks = (below - DEFAULT_PORT) // width
    if blocks < 1:
        raise ConfigError(
            f"there are no {width} ports from {DEFAULT_PORT} to {below}, where those of connections begin "
            f"({range_file}); set JUDGE_PORT to the first of a block that is free on the judge nodes"
        )
    return DEFAULT_PORT + int(job_id) % blocks * width
