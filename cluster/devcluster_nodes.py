"""The nodes of a development cluster: a network and a hostname each, the link to the others, the processes in it."""

import contextlib
import ipaddress
import os
import select
import signal
from collections.abc import Iterable, Sequence
from pathlib import Path

import psutil

from bench.errors import EnvironmentFault
from bench.process import Limits, descendants, run
from cluster.devcluster_files import DevCluster, DevNode, address, prefix_of

_NAMESPACES = Path("/run/netns")
_LINKS = Path("/sys/class/net")
_SUBNETS = 256
_WITHIN = Limits(wall_s=60)
_DIES_WITHIN_S = 10


def ip(*words: str) -> None:
    """Change something of the network; raises EnvironmentFault with what `ip` says of it."""
    done = run(["ip", *words], limits=_WITHIN)
    if not done.ok:
        raise EnvironmentFault(
            f"`ip {' '.join(words)}` failed: {done.output.strip()}; this machine may not let you make networks "
            f"(a container needs the capability NET_ADMIN)"
        )


def free_subnet() -> int:
    """The first K such that no interface of this machine has an address of 10.99.K.0/24; raises EnvironmentFault."""
    taken = {
        ipaddress.ip_network(f"{found.address}/24", strict=False)
        for interface in psutil.net_if_addrs().values()
        for found in interface
        if found.family.name == "AF_INET"
    }
    for subnet in range(_SUBNETS):
        if ipaddress.ip_network(f"{address(subnet, 0)}/24") not in taken:
            return subnet
    raise EnvironmentFault("10.99.0.0/16 is taken; take a development cluster down that nobody needs")


def make_bridge(cluster: DevCluster) -> None:
    """The wire between nodes and controller; from then on its addresses are this cluster's.

    A bridge that is given no hardware address takes one of its links', another one with every link, and loses packets.
    """
    ip("link", "add", cluster.bridge, "address", f"02:00:0a:63:{cluster.subnet:02x}:fe", "type", "bridge")
    ip("addr", "add", f"{cluster.address}/24", "dev", cluster.bridge)
    ip("link", "set", cluster.bridge, "up")


def make_node(cluster: DevCluster, node: DevNode) -> None:
    """A network of its own with one interface, `eth0`, at the bridge."""
    ip("netns", "add", node.namespace)
    ip("link", "add", node.link, "type", "veth", "peer", "name", "eth0", "netns", node.namespace)
    ip("link", "set", node.link, "master", cluster.bridge, "up")
    ip("-n", node.namespace, "link", "set", "lo", "up")
    ip("-n", node.namespace, "addr", "add", f"{node.address}/24", "dev", "eth0")
    ip("-n", node.namespace, "link", "set", "eth0", "up")


def set_link(node: DevNode, up: bool) -> None:
    ip("link", "set", node.link, "up" if up else "down")


def is_linked(node: DevNode) -> bool:
    """Whether the node's link exists and carries."""
    with contextlib.suppress(OSError):
        return (_LINKS / node.link / "carrier").read_text().strip() == "1"
    return False


def on_node(node: DevNode, argv: Sequence[str]) -> list[str]:
    """`argv` as it runs on a node: with its network and its hostname.

    `ip netns exec` would mount another /sys, in which slurmd misses the control groups and leaves.
    """
    named = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', node.name]
    return ["nsenter", f"--net={_NAMESPACES / node.namespace}", *named, *argv]


def namespaces_of(name: str) -> list[str]:
    """Network namespaces of the cluster of that name, also of one that nothing else is left of."""
    return sorted(path.name for path in _NAMESPACES.glob(f"{prefix_of(name)}n*"))


def interfaces_of(name: str) -> list[str]:
    """Outer ends of its nodes' links."""
    return sorted(path.name for path in _LINKS.glob(f"{prefix_of(name)}*"))


def bridge_exists(bridge: str) -> bool:
    return (_LINKS / bridge).exists()


def processes_in(namespace: str) -> list[int]:
    """Processes whose network is that namespace; none when there is no such one."""
    try:
        wanted = (_NAMESPACES / namespace).stat()
    except FileNotFoundError:
        return []
    found = []
    for pid in psutil.pids():
        with contextlib.suppress(OSError):
            network = Path(f"/proc/{pid}/ns/net").stat()
            if (network.st_dev, network.st_ino) == (wanted.st_dev, wanted.st_ino):
                found.append(pid)
    return found


def kill_processes(namespace: str) -> int:
    """End every process of a node at once, as a loss of power would; returns how many there were.

    Their descendants too: what runs in a sandbox has no network, so that the namespace alone would not show it.

    Raises:
        EnvironmentFault: some do not die.
    """
    killed = 0
    while there := processes_in(namespace):
        doomed = {below for pid in there for below in (pid, *descendants(pid))}
        killed += len(doomed)
        kill_all(doomed)
    return killed


def kill_all(pids: Iterable[int]) -> None:
    """Kill processes and wait until they have ended; one that nobody has reaped yet has ended.

    They are stopped before the first one dies: no parent may see its child die and end in its own way.

    Raises:
        EnvironmentFault: one lives on.
    """
    with contextlib.ExitStack() as opened:
        watched: dict[int, int] = {}
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                watched[pid] = os.pidfd_open(pid)
                opened.callback(os.close, watched[pid])
                signal.pidfd_send_signal(watched[pid], signal.SIGSTOP)
        for pidfd in watched.values():
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        for pid, pidfd in watched.items():
            if not select.select([pidfd], [], [], _DIES_WITHIN_S)[0]:
                raise EnvironmentFault(f"process {pid} does not die; see in ps what it waits for")


def remove_network(name: str, bridge: str) -> None:
    """Delete the namespaces, links and bridge of a cluster, as far as they exist."""
    for namespace in namespaces_of(name):
        _remove("netns", namespace, _NAMESPACES)
    # A link goes with its namespace, but not at once, and keeps its name as long.
    for link in (*interfaces_of(name), bridge):
        _remove("link", link, _LINKS)


def _remove(kind: str, name: str, listed_in: Path) -> None:
    """Delete one thing of the network, unless it has gone meanwhile."""
    if not run(["ip", kind, "del", name], limits=_WITHIN).ok and (listed_in / name).exists():
        ip(kind, "del", name)
