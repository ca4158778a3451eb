"""A real Slurm cluster on one machine, for tests and for people who learn: every node has its own network and name."""

import contextlib
import fcntl
import os
import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.errors import ConfigError, EnvironmentFault, UsageError
from bench.process import Completed, Limits, run, spawn
from cluster import devcluster_nodes as nodes
from cluster.devcluster_files import (
    SLURMD_PORT,
    STATE,
    DevCluster,
    DevNode,
    bridge_of,
    folder_of,
    read_cluster,
    write_files,
)
from cluster.slurm import slurm_environment

# Programs of a cluster, and where Debian has them.
NEEDED = {
    "slurmctld": "slurm-wlm",
    "slurmd": "slurm-wlm",
    "sinfo": "slurm-wlm",
    "munged": "munge",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "unshare": "util-linux",
}
# Debian keeps daemons where an ordinary user's PATH does not look.
SYSTEM_PATH = "/usr/sbin:/sbin"
_PORTS = range(16817, 32000, 256)
_KEY_BYTES = 128
_ANSWERS_WITHIN_S, _READY_WITHIN_S = 60, 90
_LOOK_EVERY_S = 0.1
_LAST_LINES = 5
# What Slurm says of a node that takes work, with or without some; a `*` behind it is a node that does not answer.
WORKING_STATES = frozenset({"idle", "planned", "mixed", "allocated", "completing"})


@dataclass(frozen=True)
class Shape:
    """What is asked for: how many nodes, and what each has. Memory in MB as Slurm counts them (MiB)."""

    nodes: int = 6
    cpus: int = 2
    gpus: int = 4
    memory_mb: int = 3000


@dataclass(frozen=True)
class NodeStatus:
    """One node now: Slurm's word for its state, whether its daemon lives, whether its link carries."""

    node: DevNode
    state: str
    slurmd: bool
    linked: bool

    @property
    def works(self) -> bool:
        return self.state in WORKING_STATES and self.slurmd and self.linked


@dataclass(frozen=True)
class ClusterStatus:
    """A whole cluster now."""

    cluster: DevCluster
    munged: bool
    slurmctld: bool
    nodes: tuple[NodeStatus, ...]

    @property
    def lacking(self) -> tuple[str, ...]:
        """What does not work: daemons and nodes by name."""
        daemons = {"munged": self.munged, "slurmctld": self.slurmctld}
        at_fault = [f"{found.node.name} ({found.state})" for found in self.nodes if not found.works]
        return (*(name for name, lives in daemons.items() if not lives), *at_fault)


def start(name: str, shape: Shape, base: Path | None = None) -> tuple[DevCluster, bool]:
    """Start a cluster and wait until every node is idle; the cluster, and whether it was up already.

    Raises:
        EnvironmentFault: this machine or user cannot, a daemon does not start, or what is there is not whole.
        UsageError, ConfigError: no cluster can have that name, its folder is too deep, or its state file is damaged.
    """
    folder = folder_of(name, base)
    require_means()
    found = read_cluster(name, base)
    if found is not None and nodes.bridge_exists(found.bridge):
        if lacking := status(found).lacking:
            raise EnvironmentFault(
                f"the cluster '{name}' is there, but not whole: {', '.join(lacking)}; `kcourt devcluster heal NODE` "
                f"mends nodes, `kcourt devcluster down --name {name}` ends it"
            )
        return found, True
    if folder.exists():  # of before the machine restarted
        end(name, base)
    cluster = _claimed(name, folder, shape)
    _start_daemons(cluster)
    return cluster, False


def require_root() -> None:
    """Raises EnvironmentFault for an ordinary user."""
    if os.geteuid() != 0:
        raise EnvironmentFault("only root can make networks of nodes and enter them; run it as root")


def require_means() -> None:
    """Raises EnvironmentFault where no cluster can be started: an ordinary user, missing programs, no namespaces."""
    require_root()
    if lacking := {package for program, package in NEEDED.items() if _found(program) is None}:
        packages = " ".join(sorted(lacking))
        raise EnvironmentFault(f"{packages} not installed; on Debian: apt-get install {packages}")
    if not run(["unshare", "--net", "--uts", "true"], limits=Limits(wall_s=_ANSWERS_WITHIN_S)).ok:
        raise EnvironmentFault(
            "this machine lets root make no networks of its own; a container needs the capability SYS_ADMIN for it"
        )


def _path() -> str:
    return f"{os.environ.get('PATH', '')}:{SYSTEM_PATH}"


def _found(program: str) -> str | None:
    return shutil.which(program, path=_path())


def _claimed(name: str, folder: Path, shape: Shape) -> DevCluster:
    """Choose addresses and a port, write the files, take the addresses; one cluster of this machine at a time."""
    with _alone():
        if nodes.bridge_exists(bridge_of(name)) or nodes.namespaces_of(name):
            raise EnvironmentFault(
                f"this machine has networks of a cluster '{name}' that {folder} knows nothing of; choose another "
                f"--name, or clear them: `kcourt devcluster down --name {name}`"
            )
        subnet = nodes.free_subnet()
        port = _free_port(subnet)
        cluster = DevCluster(
            name=name,
            folder=folder,
            subnet=subnet,
            port=port,
            nodes=shape.nodes,
            cpus=shape.cpus,
            gpus=shape.gpus,
            memory_mb=shape.memory_mb,
        )
        try:
            write_files(cluster, secrets.token_bytes(_KEY_BYTES))
        except OSError as error:
            raise ConfigError(f"{folder}: {error.strerror}; name another place with --base") from error
        nodes.make_bridge(cluster)
    return cluster


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    with (Path(tempfile.gettempdir()) / "kernelcourt-devcluster.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _free_port(subnet: int) -> int:
    """A port of the controller that no other cluster tries; raises EnvironmentFault."""
    for block in _PORTS:
        with contextlib.suppress(OSError), socket.create_server(("", block + subnet)):
            return block + subnet
    raise EnvironmentFault(f"no port from {_PORTS.start} on is free for the controller; end what listens there")


def _start_daemons(cluster: DevCluster) -> None:
    """Daemons first, so that the nodes find them; then wait for the nodes."""
    files = {"key-file": cluster.key, "socket": cluster.socket, "seed-file": cluster.key.with_name("seed")}
    files |= {"pid-file": cluster.pid_file("munged"), "log-file": cluster.log("munged")}
    options = [f"--{name}={path}" for name, path in files.items()]
    _daemon(cluster, "munged", ["munged", "--foreground", "--force", "--num-threads=2", *options])
    _until(cluster.socket.exists, cluster, "munged", "munged does not serve")
    _daemon(cluster, "slurmctld", ["slurmctld", "-D", "-i", "-f", str(cluster.conf)])
    _until(lambda: _listens(cluster.address, cluster.port), cluster, "slurmctld", "slurmctld does not serve")
    for node in cluster.members:
        nodes.make_node(cluster, node)
        _start_slurmd(cluster, node)
    _until(lambda: not status(cluster).lacking, cluster, "slurmctld", "the nodes do not become idle")


def _start_slurmd(cluster: DevCluster, node: DevNode) -> None:
    _daemon(cluster, node.name, nodes.on_node(node, ["slurmd", "-D", "-f", str(cluster.conf), "-N", node.name]))


def _daemon(cluster: DevCluster, name: str, argv: Sequence[str]) -> None:
    """Start a daemon, in the foreground of a session of its own: one that forks may be killed before it has its own."""
    with cluster.output(name).open("ab") as output:
        spawn(argv, cwd=cluster.folder, env=environment(cluster), output=output)


def _listens(address: str, port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((address, port), timeout=1):
        return True
    return False


def _asked(cluster: DevCluster, argv: Sequence[str]) -> Completed:
    """Run one of Slurm's commands with the cluster's variables, and none that steer another Slurm."""
    return run(argv, env=environment(cluster), limits=Limits(wall_s=_ANSWERS_WITHIN_S))


def environment(cluster: DevCluster) -> dict[str, str]:
    """The variables of this process with the cluster's own, and without those of another job."""
    return slurm_environment(os.environ) | cluster.variables | {"PATH": _path()}


def _tail(cluster: DevCluster, daemon: str) -> str:
    path = cluster.output(daemon)
    lines = path.read_text(errors="replace").splitlines()[-_LAST_LINES:] if path.is_file() else []
    return "\n  ".join([f"the end of {path}:", *lines]) if lines else f"{path} is empty"


def _until(holds: Callable[[], bool], cluster: DevCluster, daemon: str, otherwise: str) -> None:
    """Look until something holds; raises EnvironmentFault with the daemon's last words when it does not in time."""
    deadline = time.monotonic() + _READY_WITHIN_S
    while not holds():
        if time.monotonic() > deadline:
            raise EnvironmentFault(f"{otherwise} within {_READY_WITHIN_S} s; {_tail(cluster, daemon)}")
        time.sleep(_LOOK_EVERY_S)


def require_cluster(name: str, base: Path | None = None) -> DevCluster:
    """The cluster of that name; raises UsageError when there is none."""
    cluster = read_cluster(name, base)
    if cluster is None:
        folder = folder_of(name, base).parent
        there = ", ".join(sorted(path.parent.name for path in folder.glob(f"*/{STATE}")))
        others = f", and --name takes one of those there: {there}" if there else ""
        raise UsageError(f"no cluster '{name}' in {folder}; `kcourt devcluster up` starts one{others}")
    return cluster


def node_of(cluster: DevCluster, name: str) -> DevNode:
    """Its node of that name; raises UsageError."""
    members = {node.name: node for node in cluster.members}
    if name not in members:
        raise UsageError(f"the cluster '{cluster.name}' has no node '{name}'; it has n1 to n{cluster.nodes}")
    return members[name]


def status(cluster: DevCluster) -> ClusterStatus:
    """Look at daemons, links, and what Slurm says of each node (`unknown` where it does not answer)."""
    serves = _pid(cluster, "slurmctld") is not None
    states = _states(cluster) if serves else {}
    found = [
        NodeStatus(node, states.get(node.name, "unknown"), _pid(cluster, node.name) is not None, nodes.is_linked(node))
        for node in cluster.members
    ]
    return ClusterStatus(cluster, _pid(cluster, "munged") is not None, serves, tuple(found))


def _states(cluster: DevCluster) -> dict[str, str]:
    done = _asked(cluster, ["sinfo", "--noheader", "--Node", "--partition=batch", "--format=%N %T"])
    return dict(words for line in done.output.splitlines() if len(words := line.split()) == 2) if done.ok else {}


def _pid(cluster: DevCluster, daemon: str) -> int | None:
    """Process id of a daemon that lives."""
    return _pid_of(cluster.folder, cluster.pid_file(daemon))


def _pid_of(folder: Path, pid_file: Path) -> int | None:
    """The process of a pid file, if it is one that was started with this folder: numbers are given again."""
    try:
        process = psutil.Process(int(pid_file.read_text()))
        words = [*process.cmdline(), *process.environ().values()]
    except (OSError, ValueError, psutil.Error):
        return None
    return process.pid if any(f"{folder}/" in word for word in words) else None


def cut(node: DevNode) -> None:
    """Take a node's link down: it runs on, and nobody reaches it; raises EnvironmentFault for an ordinary user."""
    require_root()
    nodes.set_link(node, up=False)


def kill(node: DevNode) -> int:
    """End all processes of a node, its slurmd among them; returns how many there were.

    Raises:
        EnvironmentFault: this user may not.
    """
    require_root()
    return nodes.kill_processes(node.namespace)


def heal(cluster: DevCluster, node: DevNode) -> None:
    """Bring a node's link and its slurmd back, and wait until it takes work again.

    Raises:
        EnvironmentFault: this user may not, or it does not come back; the message has the end of its log.
    """
    require_root()
    nodes.set_link(node, up=True)
    if _pid(cluster, node.name) is None:
        _start_slurmd(cluster, node)
    _until(lambda: _takes_work(cluster, node), cluster, node.name, f"{node.name} does not take work")


def _takes_work(cluster: DevCluster, node: DevNode) -> bool:
    """Whether Slurm gives the node work; one that it has given up is offered to it again."""
    if not _listens(node.address, SLURMD_PORT):
        return False
    state = _states(cluster).get(node.name, "unknown")
    if state.startswith(("down", "drain")):
        _asked(cluster, ["scontrol", "update", f"nodename={node.name}", "state=resume"])
    return state in WORKING_STATES


def end(name: str, base: Path | None = None) -> bool:
    """End a cluster and remove what is left of it, also of one that only half started; whether there was anything.

    Raises:
        EnvironmentFault: this user may not, or a process does not die.
        UsageError: no cluster can have that name, or its folder holds something else.
    """
    folder = folder_of(name, base)
    if not (folder.exists() or nodes.bridge_exists(bridge_of(name)) or nodes.namespaces_of(name)):
        return False
    require_root()
    _require_ours(folder)
    for namespace in nodes.namespaces_of(name):
        nodes.kill_processes(namespace)
    # What they would write when they are asked to end goes with the folder.
    nodes.kill_all(pid for file in (folder / "run").glob("*.pid") if (pid := _pid_of(folder, file)) is not None)
    nodes.remove_network(name, bridge_of(name))
    if folder.exists():
        shutil.rmtree(folder)
    return True


def _require_ours(folder: Path) -> None:
    """The folder of a cluster goes with all that is in it."""
    if folder.exists() and any(folder.iterdir()) and not (folder / STATE).is_file():
        raise UsageError(f"{folder} is no cluster's: it holds no {STATE}; name another place with --base, or clear it")
